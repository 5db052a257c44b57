"""What a result says is what happened: signals, codes, arguments, environment, descriptors."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest
from arena import MODES, PYTHON, Faults

from skillrun import Host, Termination, UsageError

if TYPE_CHECKING:
    from arena import Arena

# DESIGN 9, and what a shell adds by itself.
ALLOWED = {
    "PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "USER", "LOGNAME", "LANG", "TZ", "PYTHONUTF8",
    "PYTHONDONTWRITEBYTECODE", "GIT_CONFIG_NOSYSTEM", "SKILLRUN_SKILL", "SKILL_DIR", "WORKSPACE",
    "SKILLRUN_OUTPUT_DIR", "SKILLRUN_EVENTS_FD", "PYTHONPYCACHEPREFIX",
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_a_death_by_signal_is_told_from_a_code(arena: Arena, mode: str) -> None:
    """Case B-09: signal and exit code are never mixed up, and only code 0 is fine."""
    arena.script('#!/bin/sh\neval "$1"\nsleep 2\n', name="go.sh")
    signaled, exited = Termination.SIGNALED, Termination.EXITED
    cases = {
        "kill -9 $$": (signaled, None, 9),
        "kill -SEGV $$": (signaled, None, 11),
        "kill -TERM $$": (signaled, None, 15),
        "kill -QUIT $$": (signaled, None, 3),
        "kill -HUP $$": (signaled, None, 1),
        "kill -PIPE $$": (signaled, None, 13),
        "exit 137": (exited, 137, None),
        "exit 0": (exited, 0, None),
        "exit 255": (exited, 255, None),
    }
    faults = Faults()
    with arena.runner(mode) as runner:
        for line, wanted in cases.items():
            with faults.of(line):
                result = runner.run("demo", "go.sh", [line], timeout=10)
                assert (result.termination, result.exit_code, result.signal) == wanted
                assert result.ok == (line == "exit 0")
                assert result.leftovers == 0
    faults.assert_none()


def test_a_timeout_is_told_from_a_death_by_signal(arena: Arena) -> None:
    """Case B-09 c: `sleep 60` at its deadline is `timed_out`, whatever signal ended it."""
    arena.script("#!/bin/sh\nexec sleep 60\n", name="go.sh")
    with arena.runner() as runner:
        result = runner.run("demo", "go.sh", timeout=0.2)
    assert (result.termination, result.exit_code) == (Termination.TIMED_OUT, None)
    assert not result.ok


@pytest.mark.parametrize("mode", MODES)
def test_no_signal_is_ignored_or_blocked_in_a_script(arena: Arena, mode: str) -> None:
    """An ignored signal stays ignored over an exec: nothing of Python's or the warden's settings may reach a script."""
    arena.script(
        "import signal\n"
        "held = signal.pthread_sigmask(signal.SIG_BLOCK, [])\n"
        "ignored = [s.name for s in signal.valid_signals() if isinstance(s, signal.Signals)"
        " and signal.getsignal(s) is signal.SIG_IGN and s not in (signal.SIGPIPE, signal.SIGXFSZ)]\n"
        "print(sorted(ignored), sorted(held))\n"
    )
    with arena.runner(mode) as runner:
        assert runner.run("demo", "go.py").stdout.text == "[] []\n"


@pytest.mark.parametrize("mode", MODES)
def test_a_broken_pipe_ends_a_script(arena: Arena, mode: str) -> None:
    """SIGPIPE has its usual effect, which Python's own setting would have taken away."""
    arena.script("#!/bin/sh\n(yes; echo $? >&2) | head -1\n", name="go.sh")
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.sh", timeout=10)
    assert (result.stdout.text, result.stderr.text.strip()) == ("y\n", str(128 + signal.SIGPIPE))


@pytest.mark.parametrize("mode", MODES)
def test_paths_and_arguments_reach_the_script_unchanged(arena: Arena, mode: str) -> None:
    """Case B-14: quotes, blanks, Unicode and shell words in the path and the arguments; no expansion."""
    arena.root = arena.root / "My Skills (v2) é中 $HOME `id` 'q' \"d\""
    arena.__post_init__()
    arena.script("import json, sys\nprint(json.dumps(sys.argv))\n", name="go now.py")
    words = ["a b", "*", "$(id)", "", "new\nline", "é中", "'", '"', "\\", "-n"]
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go now.py", words)
    assert result.error is None
    found = json.loads(result.stdout.text)
    assert found == [str(arena.skills / "demo" / "scripts" / "go now.py"), *words]
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
def test_arguments_that_look_like_options_are_not_ours(arena: Arena, mode: str) -> None:
    """Case B-19: neither skillrun, nor the launcher, nor the interpreter takes one of them."""
    arena.script("import json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    faults = Faults()
    with arena.runner(mode) as runner:
        for words in (
            ["--help"],
            ["--", "x"],
            ["-p", "(allow default)"],
            [""],
            ["-c", "echo no"],
            ["-I", "-S"],
            [],
        ):
            with faults.of(words):
                assert runner.run("demo", "go.py", words).json == words
    faults.assert_none()


@pytest.mark.parametrize("mode", MODES)
def test_an_argument_that_is_too_large_is_named(arena: Arena, mode: str) -> None:
    """Case B-18: 131,071 bytes pass; one more, or too many together, is an error with sizes and a way out."""
    arena.script("import sys\nprint(sum(map(len, sys.argv[1:])))\n")
    with arena.runner(mode) as runner:
        assert runner.run("demo", "go.py", ["x" * 131_071]).stdout.text == "131071\n"
        result = runner.run("demo", "go.py", ["x" * 131_072])
        assert result.termination is Termination.REFUSED
        assert result.error is not None
        assert (result.error.rule, "131072" in result.error.message) == ("arguments-too-large", True)
        assert "stdin" in (result.error.help or "")
        assert runner.run("demo", "go.py", ["😀" * 32_767]).stdout.text == "32767\n"
        assert runner.run("demo", "go.py", ["😀" * 32_768]).termination is Termination.REFUSED
        assert runner.run("demo", "go.py", ["x"] * 50_000).stdout.text == "50000\n"
        many = runner.run("demo", "go.py", ["x" * 100_000] * 40)
        assert many.termination is Termination.FAILED_TO_START
        assert many.error is not None
        assert many.error.rule == "arguments-too-large"
        assert runner.run("demo", "go.py", ["fine"]).stdout.text == "4\n"
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
def test_no_secret_of_the_environment_reaches_a_script(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Case B-16: an allow list; PATH has no empty or relative part."""
    secrets = {
        "MYSQL_PWD": "m", "REDISCLI_AUTH": "r", "OPENAI_API_KEY": "o", "AWS_PROFILE": "p", "LD_PRELOAD": "/tmp/x.so",
        "PYTHONPATH": "/tmp", "DYLD_INSERT_LIBRARIES": "/tmp/y", "SSH_AUTH_SOCK": "/tmp/s", "PYTHONSTARTUP": "/tmp/z",
        "BASH_ENV": "/tmp/b", "ENV": "/tmp/e", "IFS": "x", "LCD_TOKEN": "l", "TZ_KEY": "z",
    }  # fmt: skip
    for name, value in secrets.items():
        if name != "LD_PRELOAD":  # the loader would complain in every child of this test
            monkeypatch.setenv(name, value)
    environ = {**secrets, "PATH": f":.:bin:{os.environ['PATH']}:", "LC_TIME": "C", "TZ": "UTC"}
    arena.script("import json, os\nprint(json.dumps(dict(os.environ)))\n")
    host = Host(temporary=arena.temporary, environ=MappingProxyType(environ))
    with arena.runner(mode, host=host) as runner:
        found = runner.run("demo", "go.py").json
        assert not [name for name in found if name not in ALLOWED and not name.startswith("LC_")]
        assert not set(found) & set(secrets)
        assert all(part.startswith("/") for part in found["PATH"].split(":"))
        # What the launcher and the warden hold, a script of the same user could read at passthrough.
        for pid in arena.everything():
            assert b"OPENAI" not in Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", [f"#!{PYTHON} -IS", "#!/bin/sh"])
def test_only_three_descriptors_are_open_in_a_script(
    arena: Arena, tmp_path: Path, mode: str, source: str
) -> None:
    """Case B-23: not the caller's, inheritable ones included, and none of skillrun's; for the first run and a later one."""
    secret = tmp_path / "secret"
    secret.write_text("hidden words")
    held = [os.open(secret, os.O_RDONLY) for _ in range(12)]
    for descriptor in held:
        os.set_inheritable(descriptor, True)
    if "python" in source:
        arena.script(
            f"{source}\nimport os\n"
            "def is_open(n):\n    try:\n        os.fstat(n)\n        return True\n    except OSError:\n        return False\n"
            "print([n for n in range(1024) if is_open(n)])\n"
        )
    else:
        lines = "".join(f"(: <&{n}) 2>/dev/null && echo {n}\n" for n in range(10))
        arena.script(f"{source}\n{lines}:\n")
    wanted = "[0, 1, 2]\n" if "python" in source else "0\n1\n2\n"
    try:
        with arena.runner(mode) as runner:
            for _ in range(3):
                assert runner.run("demo", "go.py").stdout.text == wanted
    finally:
        for descriptor in held:
            os.close(descriptor)
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
def test_odd_timeouts_do_not_harm_the_launcher(arena: Arena, mode: str) -> None:
    """A timeout can only shorten; whatever was asked for, the call ends and the next run works."""
    arena.script("#!/bin/sh\nexec sleep 0.1\n", name="go.sh")
    faults = Faults()
    with arena.runner(mode) as runner:
        for seconds in (1e-9, 0.0, -5.0, float("nan"), float("inf"), 1e12):
            with faults.of(seconds):
                with contextlib.suppress(UsageError):
                    result = runner.run("demo", "go.sh", timeout=seconds)
                    assert result.termination in {Termination.EXITED, Termination.TIMED_OUT}
                assert runner.run("demo", "go.sh").ok
    faults.assert_none()
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
def test_a_ceiling_of_a_year_is_a_deadline_like_any_other(arena: Arena, mode: str) -> None:
    """Milliseconds to a deadline beyond 24 days do not fit poll(2)'s int; the launcher must live with it."""
    arena.script("#!/bin/sh\nsleep 0.2\necho fine\n", name="go.sh")
    manifest = arena.skills / "demo" / "SKILL.md"
    manifest.write_text(manifest.read_text().replace("timeout: 100", "timeout: 31536000"))
    arena.ceiling.write_text(arena.ceiling.read_text().replace("timeout: 100", "timeout: 31536000"))
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.sh")
        assert (result.error, result.stdout.text) == (None, "fine\n")
    arena.assert_clean()
