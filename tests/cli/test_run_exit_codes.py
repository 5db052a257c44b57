"""`skillrun run` exits as its script did, or with the code that says why it did not run (DESIGN 11)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from desk import Desk


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("#!/bin/sh\nexit 0\n", 0),
        ("#!/bin/sh\nexit 7\n", 7),
        ("#!/bin/sh\nexit 125\n", 125),
        ("#!/bin/sh\nkill -9 $$\n", 137),
        ("#!/bin/sh\nkill -15 $$\n", 143),
    ],
)
@pytest.mark.parametrize("form", ["plain", "json"])
def test_the_scripts_own_end_is_the_exit_code(confining: Desk, script: str, code: int, form: str) -> None:
    """An exit status is passed on, a signal becomes 128+n, and `--json` changes neither."""
    confining.skill("demo", script)
    done = confining("run", "demo", *(["--json"] if form == "json" else []))
    assert done.returncode == code
    if form == "json":
        result = json.loads(done.stdout)
        assert (result["termination"], result["exit_code"], result["signal"]) == (
            ("signaled", None, code - 128) if "kill" in script else ("exited", code, None)
        )


@pytest.mark.parametrize("flag", [["--timeout", "0.5"], []])
def test_a_deadline_is_124(confining: Desk, flag: list[str]) -> None:
    """A script that takes longer than its time is 124, by the flag and by its own request, and it is said."""
    confining.skill("demo", "#!/bin/sh\necho before\nsleep 60\n", front="" if flag else "timeout: 0.5\n")
    done = confining("run", "demo", *flag)
    assert (done.returncode, done.stdout) == (124, "before\n")
    assert "skillrun: stopped after 0.5 s, its deadline" in done.stderr


def test_an_interpreter_that_is_not_there_is_127(desk: Desk) -> None:
    """127 as `env` says it, with the interpreter's name, and nothing ran."""
    desk.skill("demo", "#!/usr/bin/env no-such-interpreter\n")
    done = desk("run", "demo")
    assert done.returncode == 127
    assert "error[interpreter-not-found]" in done.stderr
    assert "no-such-interpreter" in done.stderr


def test_a_program_that_cannot_be_executed_is_126(confining: Desk) -> None:
    """126 for a script whose interpreter is no program, and for a program of no known format."""
    folder = confining.skill("demo", "#!/etc/hostname\n")
    assert confining("run", "demo").returncode == 126
    (folder / "scripts" / "main.sh").unlink()
    (folder / "scripts" / "broken").write_bytes(b"\x7fELF" + b"\0" * 60)
    (folder / "scripts" / "broken").chmod(0o755)
    assert confining("run", "demo").returncode == 126


def test_no_interpreter_line_is_126(desk: Desk) -> None:
    """A file that nothing says how to start is not guessed at."""
    folder = desk.skill("demo")
    (folder / "scripts" / "main.sh").rename(folder / "scripts" / "plain")
    (folder / "scripts" / "plain").write_text("echo hello\n")
    (folder / "scripts" / "plain").chmod(0o755)
    done = desk("run", "demo", "plain")
    assert done.returncode in {125, 126}
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run"], "skill"),
        (["run", "demo", "--jsn"], "did you mean `--json`?"),
        (["run", "demo", "main.sh", "word"], "`word` is one word too many"),
        (["run", "demo", "word"], "an argument of the script stands behind `--`"),
        (["run", "demi"], "did you mean `demo`?"),
        (["run", "./nowhere"], "does not exist"),
        (["run", "demo", "main.s"], "did you mean `main.sh`?"),
        (["run", "demo", "--timeout", "0"], "above 0"),
        (["run", "demo", "--timeout", "nan"], "above 0"),
        (["run", "demo", "--timeout", "soon"], "--timeout"),
        (["run", "demo", "--stdin", "nowhere"], "can't be read for standard input"),
        (["run", "demo", "--ceiling", "redaer"], "did you mean `reader`?"),
        (["run", "demo", "--ceiling", "./nowhere.yaml"], "cannot be read"),
        (["run", "demo", "--backend", "moat"], "there is no backend `moat`"),
        (["run", "demo", "--require", "some"], "--require"),
        (["run", "demo", "--workspace", "/"], "cannot be a workspace"),
        (["run", "demo", "--skills", "nowhere"], "there is no skill `demo`"),
        (["run", "demo", "--network", "https://example.com"], "leave the scheme"),
        (["run", "demo", "--read", "$HOME/x"], "variable"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, list) else "",
)
def test_a_wrong_call_is_125_and_says_what_to_do(desk: Desk, words: list[str], told: str) -> None:
    """Whatever is wrong with a call of `run`: 125, an error with what to do, and nothing started."""
    desk.skill("demo", "#!/bin/sh\necho started\n")
    done = desk(*words)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("error[")
    assert told in done.stderr


def test_home_is_no_workspace(desk: Desk) -> None:
    """Standing in the home folder, or naming it, is refused with 125."""
    folder = desk.skill("demo", "#!/bin/sh\necho started\n")
    for done in (desk("run", folder, cwd=desk.home), desk("run", "demo", "--workspace", desk.home)):
        assert (done.returncode, done.stdout) == (125, "")
        assert "error[workspace-refused]" in done.stderr


def test_strict_makes_a_cut_a_refusal(confining: Desk) -> None:
    """A cut alone never stops a run; with `--strict` it is 125, termination refused, and no guarantee is claimed."""
    confining.skill("demo", "#!/bin/sh\necho started\n", front="fs_write: [./out]\n")
    assert confining("run", "demo").stdout == "started\n"
    done = confining("run", "--strict", "--json", "demo")
    result = json.loads(done.stdout)
    assert (done.returncode, result["termination"], result["guarantees"]) == (125, "refused", None)
    assert result["error"]["rule"] == "strict"
    assert [cut["asked"] for cut in result["grant"]["refused"]] == ["./out"]


def test_a_host_list_is_refused(confining: Desk) -> None:
    """A grant that is a list of hosts can't be enforced yet, so it does not run as if it were."""
    confining.skill("demo", "#!/bin/sh\necho started\n")
    done = confining("run", "demo", "--network", "api.example.com:443")
    assert (done.returncode, done.stdout) == (125, "")
    assert "error[network-hosts]" in done.stderr


def test_an_unconfined_run_is_accepted_only_in_words(desk: Desk) -> None:
    """Without a backend a run is refused; `--allow-unconfined` runs it, and says so before it starts."""
    desk.skill("demo", "#!/bin/sh\necho started\n")
    refused = desk("run", "demo", "--backend", "passthrough")
    assert (refused.returncode, refused.stdout) == (125, "")
    assert "error[backend-refused]" in refused.stderr
    unknown = desk("run", "demo", "--backend", "landlock")
    assert (unknown.returncode, "error[backend-unknown]" in unknown.stderr) == (125, True)
    accepted = desk("run", "demo", "--backend", "passthrough", "--allow-unconfined")
    assert (accepted.returncode, accepted.stdout) == (0, "started\n")
    assert "[passthrough, unconfined]" in accepted.stderr.splitlines()[0]
    assert "warning[unconfined]" in accepted.stderr


def test_json_of_a_run_that_could_not_be_prepared(desk: Desk) -> None:
    """`--json` always prints a Result, with null for what is not known, and the same exit code."""
    done = desk("run", "nobody", "--json", "--", "a")
    result = json.loads(done.stdout)
    assert (done.returncode, result["termination"], result["error"]["rule"]) == (
        125,
        "refused",
        "skill-unknown",
    )
    assert result["argv"] == ["a"]
    desk.skill("demo")
    whole = json.loads(desk("run", "demo", "--json").stdout)
    assert result.keys() == whole.keys()
