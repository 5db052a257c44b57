"""Launching on macOS, tried with a fake sandbox-exec: command lines, exit codes, deadlines, and the end of the tree."""

from __future__ import annotations

import ast
import os
import shutil
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from skillrun.cli.answers import answer
from skillrun.host import Host
from skillrun.launch.preflight import in_a_sandbox
from skillrun.launch.result import Result, Termination
from skillrun.launch.scratches import Scratches
from skillrun.launch.session import Session
from skillrun.permissions.explain import Access, Decision
from skillrun.runner import Runner
from skillrun.sandbox.choose import Choice
from skillrun.sandbox.seatbelt.backend import LAUNCHER
from skillrun.sandbox.seatbelt.read_back import read_back

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
FAKE = Path(__file__).with_name("sandbox_exec.py")


def served_by(runner: Runner, session: Session) -> None:
    """Give a runner the launcher of another platform; its scratch folders lie in that one's folder."""
    runner.launcher = session
    runner._scratches = Scratches(session)
    runner._pipeline = replace(runner._pipeline, launcher=session, scratches=runner._scratches)


@dataclass
class Mac:
    """A host that passes for a Mac: a runner whose sandbox-exec is the fake."""

    base: Path
    runner: Runner
    program: Path

    def script(self, body: str, *, name: str = "main.py", front: str = "fs_write: ['.']") -> None:
        """Write the skill `demo` with one script."""
        folder = self.base / "skills/demo"
        (folder / "scripts").mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(f"---\nname: demo\ndescription: d\n{front}\n---\n")
        path = folder / "scripts" / name
        path.write_text(body)
        path.chmod(0o755)

    def run(self, *arguments: str, **options: object) -> Result:
        """Run it."""
        return self.runner.run("demo", None, arguments, **options)  # type: ignore[arg-type]

    def mood(self, how: str) -> None:
        """Make the fake refuse."""
        self.program.with_suffix(".mood").write_text(how)

    @property
    def calls(self) -> list[list[str]]:
        """The command lines that the fake was called with."""
        log = self.program.with_suffix(".log")
        return [ast.literal_eval(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def mac(tmp_path: Path) -> Iterator[Mac]:
    """Give such a host, and see that no process and no folder of it is left."""
    base = tmp_path.resolve()
    for folder in ("work", "skills", "home", "tmp"):
        (base / folder).mkdir()
    program = base / "sandbox-exec"
    program.write_text(f"#!{sys.executable} -B\n{FAKE.read_text()}")
    program.chmod(0o755)
    program.with_suffix(".path").write_text(str(ROOT))
    (base / "ceiling.yaml").write_text(
        "sandbox: {fs_read: ['${workspace}'], fs_write: ['${workspace}'], timeout: 30}\n"
    )
    host = Host(home=base / "home", environ={"PATH": "/usr/bin:/bin"}, temporary=base / "tmp")
    with Runner(
        workspace=base / "work", skills=[base / "skills"], ceiling=base / "ceiling.yaml", host=host
    ) as runner:
        runner.launcher.close()
        served_by(runner, Session(temporary=base / "tmp", program=str(program), system="darwin"))
        yield Mac(base, runner, program)
    left = [p for p in psutil.process_iter() if str(base) in " ".join(_words(p))]
    assert not left, left
    # The folder that all of a user's launchers share stays; theirs do not.
    assert not [entry for folder in (base / "tmp").iterdir() for entry in folder.iterdir()]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_a_script_runs_confined_by_its_profile(mac: Mac) -> None:
    """The profile comes by `-f` from a file that no run can reach, each path by `-D`, then the command."""
    mac.script("#!/usr/bin/python3\nimport sys\nprint(sys.argv[1:], sys.stdin.read())\nsys.exit(7)\n")
    result = mac.run("a b", 'c") (allow default)', stdin=b"given")

    assert (result.termination, result.exit_code, result.backend) == (Termination.EXITED, 7, "seatbelt")
    assert result.stdout.text == "['a b', 'c\") (allow default)'] given\n"
    assert result.guarantees is not None
    assert dict(result.guarantees.items())["processes"].value == "partial"
    assert "processes-partial" in {warning.rule for warning in result.warnings}
    first, second = mac.calls
    assert first[-1] == "/usr/bin/true", "a profile is tried before its first run"
    assert second[:2] == first[:2]
    file = Path(second[1])
    assert str(file).startswith(str(mac.runner.launcher.scratch_root))
    assert file.stat().st_mode & 0o777 == 0o600
    assert str(mac.base) not in file.read_text()
    assert f"READ_0={mac.base}/skills/demo" in second
    mac.run()
    assert len(mac.calls) == 3, "a profile that was taken is not tried again"


def test_the_environment_and_limits_are_the_scripts_own(mac: Mac) -> None:
    """Only listed variables, no descriptor of ours, limits on files and cores, a session of its own."""
    mac.script(
        "#!/usr/bin/python3\nimport os, resource, json\n"
        "print(json.dumps([sorted(os.environ), resource.getrlimit(4)[0], resource.getrlimit(1)[0],"
        " sorted(os.listdir('/dev/fd')), os.getsid(0) == os.getpgid(0), os.getcwd()]))\n"
    )
    os.environ["SECRET_OF_THE_OWNER"] = "x"
    try:
        result = mac.run()
    finally:
        del os.environ["SECRET_OF_THE_OWNER"]
    names, core, size, descriptors, leads, cwd = result.json
    assert "SECRET_OF_THE_OWNER" not in names
    assert {"HOME", "PATH", "TMPDIR", "WORKSPACE"} <= set(names)
    assert (core, size) == (1, 1 << 30)
    assert len(descriptors) == 4, descriptors  # 0, 1, 2 and the listing itself
    assert leads
    assert cwd == str(mac.base / "work")


@pytest.mark.parametrize(
    ("how", "stage", "advice"),
    [
        ("nested", "nested", "outside of the other sandbox"),
        ("broken", "profile", "bug in skillrun"),
        ("abort", "loader", "shows the profile"),
    ],
)
def test_refusals_of_macos_are_no_exit_codes(mac: Mac, how: str, stage: str, advice: str) -> None:
    """C-29: exits 71, 65 and SIGABRT of sandbox-exec are told as what they are, and the script did not run."""
    mac.script(f"#!/bin/sh\ntouch {mac.base}/work/ran\n", name="main.sh")
    mac.mood(how)
    result = mac.run()

    assert result.termination is Termination.FAILED_TO_START
    assert result.exit_code is None
    assert result.error is not None
    assert f"stage `{stage}`" in result.error.message
    assert advice in (result.error.help or "")
    assert not (mac.base / "work/ran").exists()


@pytest.mark.parametrize("code", [65, 71, 126, 134])
def test_the_same_codes_of_a_script_are_its_own(mac: Mac, code: int) -> None:
    """A script may exit with sandbox-exec's codes."""
    mac.script(f"#!/bin/sh\nexit {code}\n", name="main.sh")
    result = mac.run()
    assert (result.termination, result.exit_code) == (Termination.EXITED, code)


def test_a_script_that_aborts_was_started(mac: Mac) -> None:
    """SIGABRT of a script is told as its signal."""
    mac.script("#!/bin/sh\nkill -ABRT $$\n", name="main.sh")
    result = mac.run()
    assert (result.termination, result.signal) == (Termination.SIGNALED, 6)


def test_a_refusal_that_comes_later_is_told_apart(mac: Mac) -> None:
    """When the profile was taken once and the sandbox is refused now, the run failed to start and did not exit 71."""
    mac.script("#!/bin/sh\nexit 0\n", name="main.sh")
    assert mac.run().ok
    mac.mood("nested")
    result = mac.run()
    assert result.termination is Termination.FAILED_TO_START
    assert "nested" in (result.error.message if result.error else "")


def test_what_cannot_be_executed_is_told(mac: Mac) -> None:
    """A file that macOS can't execute is an error of the start, not exit code 71."""
    mac.script("#!/bin/sh\nexit 0\n", name="main.sh")
    mac.script("\x7fELF not really", name="main.sh")
    result = mac.run()
    assert result.termination in {Termination.FAILED_TO_START, Termination.EXITED}
    assert result.exit_code != 0


def test_the_deadline_ends_the_whole_tree(mac: Mac) -> None:
    """A script that ignores TERM, its children, and one that left the group are all dead when the result is there."""
    mac.script(
        "#!/usr/bin/python3\nimport os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"mark = {str(mac.base)!r} + '/marker'\n"
        "code = 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)'\n"
        "subprocess.Popen([sys.executable, '-c', code, mark])\n"
        "subprocess.Popen([sys.executable, '-c', code, mark], start_new_session=True)\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.execv(sys.executable, [sys.executable, '-c', code, mark])\n    os._exit(0)\n"
        "print('up', flush=True)\ntime.sleep(60)\n"
    )
    started = time.monotonic()
    result = mac.run(timeout=5.0)

    assert result.termination is Termination.TIMED_OUT
    assert time.monotonic() - started < 30
    assert result.stdout.text == "up\n"
    assert not [p for p in psutil.process_iter() if f"{mac.base}/marker" in _words(p)]


def test_children_that_remain_are_killed_and_counted(mac: Mac) -> None:
    """A leader that exits while children remain ends the run at once."""
    mac.script(
        f"#!/bin/sh\nsleep 60 # {mac.base}\n".replace("sleep 60", "sleep 60 & sleep 61 & echo out"),
        name="main.sh",
    )
    started = time.monotonic()
    result = mac.run()

    assert (result.termination, result.exit_code, result.stdout.text) == (Termination.EXITED, 0, "out\n")
    assert result.leftovers == 2
    assert time.monotonic() - started < 10


def test_cancel_ends_a_run(mac: Mac) -> None:
    """Ctrl-C of the owner ends the tree before it reaches the caller."""
    mac.script("#!/bin/sh\nsleep 60\n", name="main.sh")
    plans: list[object] = []

    class Stop(Exception):  # noqa: N818 - as Ctrl-C
        """The owner's wish."""

    class Sink:
        def ready(self) -> None: ...
        def room(self) -> int:
            return 1

        def feed(self, chunk: bytes) -> None:
            if chunk:
                raise Stop

        def captured(self) -> None: ...

    mac.script("#!/bin/sh\necho x\nsleep 60\n", name="main.sh")
    with pytest.raises(Stop):
        mac.run(sinks=(Sink(), Sink()), on_plan=lambda *_: plans.append(1))
    assert plans


def test_memory_and_processes_are_watched(mac: Mac) -> None:
    """A run over a limit is ended with the figure, as far as its processes can be found."""
    (mac.base / "ceiling.yaml").write_text(
        "sandbox: {fs_read: ['${workspace}'], limits: {memory: 100MiB, processes: 20}}\n"
    )
    mac.script("#!/usr/bin/python3\nimport time\nx = bytearray(300 << 20)\ntime.sleep(30)\n", front="")
    again = Runner(
        workspace=mac.base / "work",
        skills=[mac.base / "skills"],
        ceiling=mac.base / "ceiling.yaml",
        host=mac.runner.host,
    )
    again.launcher.close()
    served_by(again, Session(temporary=mac.base / "tmp", program=str(mac.program), system="darwin"))
    with again:
        result = again.run("demo")
        assert result.termination is Termination.MEMORY_LIMIT, result
        mac.script(
            "#!/bin/sh\ni=0\nwhile [ $i -lt 40 ]; do sleep 30 & i=$((i+1)); done\nsleep 30\n",
            name="main.py",
            front="",
        )
        result = again.run("demo")
        assert result.error is not None
        assert result.error.rule == "process-limit"


def test_an_exchanged_script_does_not_run(mac: Mac) -> None:
    """What was planned is compared with what lies there just before the start."""
    mac.script("#!/bin/sh\necho one\n", name="main.sh")
    result = mac.run(on_plan=lambda ready, _: ready.policy.script.write_text("#!/bin/sh\necho other\n"))

    assert result.termination is Termination.FAILED_TO_START
    assert result.error is not None
    assert result.error.rule == "changed-before-start"


LOG = """#!{python}
import json, os, sys
from pathlib import Path
pid = int(Path(os.path.dirname(__file__), "pid").read_text())
assert sys.argv[1:4] == ["show", "--style", "ndjson"], sys.argv
for who, text in (
    (pid, "file-read-data /Users/u/.ssh/id"), (pid, "file-read-data /Users/u/.ssh/id"), (pid, "mach-lookup com.apple.x"),
    (pid, "network-outbound 1.1.1.1:443"), (1, "file-read-data /etc/of-somebody-else"),
):
    print(json.dumps(dict(eventMessage="Sandbox: sh(%d) deny(1) %s" % (who, text))))
print("Timestamp  no json")
print(json.dumps([1]))
"""


def test_denials_are_read_from_the_log_when_asked(mac: Mac) -> None:
    """`--backend seatbelt-log` lists what the kernel denied to this run's processes, each once, and nobody else's."""
    log = mac.base / "log"
    log.write_text(LOG.replace("{python}", sys.executable))
    log.chmod(0o755)
    mac.script(f"#!/bin/sh\necho $$ > {mac.base}/pid\nexit 1\n", name="main.sh")
    session = Session(temporary=mac.base / "tmp", program=str(mac.program), log=str(log), system="darwin")
    served_by(mac.runner, session)
    assert mac.run().denials == ()
    mac.runner._pipeline = replace(mac.runner._pipeline, choice=Choice(backend="seatbelt-log"))
    denied = mac.run().denials
    mac.runner.launcher.close()

    assert [(one.operation, str(one.path), one.fix, one.evidence) for one in denied] == [
        ("read", "/Users/u/.ssh/id", None, "kernel"),  # a secret: no flag is proposed
        ("mach-lookup", "None", None, "kernel"),
        ("network", "None", "--network", "kernel"),
    ]


def test_a_script_that_vanished_does_not_run(mac: Mac) -> None:
    """A script, or the folder it runs in, that is gone when it should start is told as a change."""
    mac.script("#!/bin/sh\necho one\n", name="main.sh")
    result = mac.run(on_plan=lambda ready, _: ready.policy.script.unlink())
    assert result.error is not None
    assert result.error.rule == "changed-before-start"
    mac.script("#!/bin/sh\necho one\n", name="main.sh")
    result = mac.run(on_plan=lambda *_: (mac.base / "work").rename(mac.base / "work2"))
    (mac.base / "work2").rename(mac.base / "work")
    assert result.error is not None
    assert result.error.rule == "changed-before-start"


def test_a_watch_that_fails_leaves_nothing(mac: Mac, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the watch itself breaks, the run is ended and that is told."""
    from skillrun.launch.watch import Watch

    mac.script("#!/bin/sh\nsleep 60\n", name="main.sh")

    def broken(*_: object) -> None:
        raise ValueError("no such thing")

    monkeypatch.setattr(Watch, "_over", broken)
    result = mac.run()
    assert result.termination is Termination.FAILED_TO_START
    assert "the watch failed: no such thing" in (result.error.message if result.error else "")


def test_several_runs_at_once(mac: Mac) -> None:
    """Runs of several threads are apart, and all end."""
    mac.script("#!/bin/sh\necho $1 $TMPDIR\n", name="main.sh")
    results: list[Result] = []
    threads = [threading.Thread(target=lambda n=n: results.append(mac.run(str(n)))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.stdout.text.split()[0] for result in results) == ["0", "1", "2", "3"]
    assert len({result.stdout.text.split()[1] for result in results}) == 4


def test_without_sandbox_exec_nothing_runs(mac: Mac) -> None:
    """No silent run without a sandbox when there is none."""
    mac.script("#!/bin/sh\necho x\n", name="main.sh")
    mac.program.unlink()
    result = mac.run()
    assert result.termination is Termination.REFUSED
    assert result.error is not None
    assert "sandbox-exec" in result.error.message


def test_explain_and_the_profile_give_one_answer(mac: Mac) -> None:
    """C-15: what `explain` says of a path is what the profile of a run decides, the system's own paths included."""
    mac.script("#!/bin/sh\n", name="main.sh", front="fs_read: [data]\nfs_write: [out]")
    for folder in ("data", "out", "other"):
        (mac.base / "work" / folder).mkdir()
    preview = mac.runner.preview("demo")
    assert preview.chosen.backend is not None
    assert preview.chosen.backend.name == "seatbelt"
    profile = read_back(preview.ready.policy, dict(preview.ready.grant.missing))
    work = f"{mac.base}/work"
    asked = [
        f"{work}/data/x",
        f"{work}/out/x",
        f"{work}/out/.env",
        f"{work}/out/.git/hooks/x",
        f"{work}/other/x",
    ]
    asked += [
        "/usr/lib/libz.dylib",
        "/dev/null",
        "/private/etc/passwd",
        "/private/etc/master.passwd",
        f"{mac.base}/home/x",
    ]
    for access, operation in ((Access.READ, "file-read-data"), (Access.WRITE, "file-write-data")):
        for found in answer(preview, access, asked):
            given = {"vnode-type": "CHARACTER-DEVICE"}
            allowed = profile.decide(operation, found.resolved or "", given).allowed
            assert (found.decision is Decision.ALLOWED) is allowed, found
    read = {one.target: one.decision.value for one in answer(preview, Access.READ, asked)}
    assert (read["/usr/lib/libz.dylib"], read[f"{work}/other/x"]) == ("allowed", "denied")


def test_the_launcher_is_named_by_its_absolute_path() -> None:
    """The real one is never looked up on PATH, and a process that is no Mac's is in no Seatbelt sandbox."""
    assert LAUNCHER == "/usr/bin/sandbox-exec"
    if sys.platform != "darwin":
        assert not in_a_sandbox()
        assert shutil.which("sandbox-exec") is None


def test_the_profile_is_never_written_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that nobody started yet makes its folder first: the current one may be the script's to write."""
    here, temporary = tmp_path / "here", tmp_path / "tmp"
    (here / "profiles").mkdir(parents=True)
    temporary.mkdir()
    monkeypatch.chdir(here)
    session = Session(temporary=temporary)
    try:
        command = session._confined({"profile": "(version 1)", "parameters": []})
        assert Path(command[2]).is_relative_to(temporary.resolve())
        assert not list((here / "profiles").iterdir())
    finally:
        session.close()
