"""Faults of the host, through seams: a named error, nothing left, and the next run works."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from arena import MODES, Background, Faults, Holdings, eventually, launcher_pid, marked, scratches

import skillrun.launch.pair
import skillrun.launch.probing
from skillrun import Host, SkillrunError, Termination

if TYPE_CHECKING:
    from collections.abc import Iterator

    from arena import Arena

    from skillrun.launch.launcher import Launcher
    from skillrun.sandbox.backend import Probe

FINE = "print('fine')\n"


class Failing:
    """Replaces a function of a module: the calls numbered in `at` fail with an errno, the others pass."""

    def __init__(self, original: Any, number: int, at: set[int]) -> None:
        self.original, self.number, self.at, self.calls = original, number, at, 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Count, and fail or pass on."""
        self.calls += 1
        if self.calls in self.at:
            raise OSError(self.number, os.strerror(self.number))
        return self.original(*arguments, **named)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "number",
    [errno.EMFILE, pytest.param(errno.ENOMEM, marks=pytest.mark.slow)],
    ids=["EMFILE", "ENOMEM"],
)
def test_a_call_that_fails_before_the_start(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str, number: int
) -> None:
    """No memory file, pipe or socket to be had: a SkillrunError, no descriptor lost, and the next run works."""
    arena.script(FINE)
    faults = Faults()
    seams: list[tuple[Any, str, int]] = [
        (os, "memfd_create", 1),
        (os, "pipe", 1),
        (os, "pipe", 2),
        (os, "pipe", 3),
        (socket, "socketpair", 1),
        *((mmap, "mmap", at) for at in (1, 2, 3)),  # what is kept of each stream, and what is read into
    ]
    with arena.runner(mode) as runner:
        assert runner.run("demo", "go.py").ok
        for owner, name, at in seams:
            before = Holdings.now()
            problem: Any = None
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, Failing(getattr(owner, name), number, {at}))
                try:
                    runner.run("demo", "go.py")
                except BaseException as caught:  # noqa: BLE001 - judged below
                    problem = caught
            with faults.of((name, at, "named")):
                assert isinstance(problem, SkillrunError), repr(problem)
            problem = None
            with faults.of((name, at, "kept")):
                leaked = before.leaked()
                for descriptor in leaked:
                    os.close(descriptor)  # so that the rest of the test judges something else
                assert not leaked, f"left open: {leaked}"
            with faults.of((name, at, "next run")):
                assert runner.run("demo", "go.py").stdout.text == "fine\n"
    faults.assert_none()
    arena.assert_clean()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (socket, "socketpair"),
        (tempfile, "mkdtemp"),
        (subprocess, "Popen"),
        (os, "mkdir"),
    ],
)
def test_a_call_that_fails_at_the_start_of_the_launcher(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    """No socket, no folder, no process: a SkillrunError, nothing left, and the next run works."""
    arena.script(FINE)
    before = Holdings.now()
    with arena.runner() as runner:
        problem: Any = None
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, Failing(getattr(owner, name), errno.EMFILE, {1}))
            try:
                runner.run("demo", "go.py")
            except BaseException as caught:  # noqa: BLE001 - judged below
                problem = caught
        if name != "mkdir":  # by then the launcher runs, and stays
            leaked = before.leaked()
            for descriptor in leaked:
                os.close(descriptor)
            assert not leaked, f"left open: {leaked}"
            assert not list(arena.temporary.iterdir())
        assert isinstance(problem, SkillrunError), repr(problem)
        assert runner.run("demo", "go.py").stdout.text == "fine\n"
    arena.assert_clean()


@contextlib.contextmanager
def descriptors(limit: int) -> Iterator[None]:
    """Lower the limit of open files of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("mode", ["confined", pytest.param("passthrough", marks=pytest.mark.slow)])
def test_the_owner_has_few_descriptors_left(arena: Arena, mode: str) -> None:
    """With room for 0, 1, 2 … more: the run works or ends with a SkillrunError, and nothing is lost."""
    arena.script(FINE)
    faults = Faults()
    with arena.runner(mode) as runner:
        assert runner.run("demo", "go.py").ok
        for free in range(13):
            before = Holdings.now()
            plug = []
            result: Any = None
            problem: Any = None
            try:
                with descriptors(max(before.descriptors) + 40):
                    with contextlib.suppress(OSError):
                        while True:
                            plug.append(os.open("/dev/null", os.O_RDONLY))
                    for _ in range(free):
                        os.close(plug.pop())
                    try:
                        result = runner.run("demo", "go.py", timeout=10)
                    except BaseException as caught:  # noqa: BLE001 - judged below
                        problem = caught
            finally:
                for descriptor in plug:
                    os.close(descriptor)
            with faults.of((free, "named")):
                assert problem is None or isinstance(problem, SkillrunError), repr(problem)
                assert result is None or result.error is not None or result.stdout.text == "fine\n"
            problem = None
            with faults.of((free, "kept")):
                leaked = before.leaked()
                for descriptor in leaked:
                    os.close(descriptor)
                assert not leaked, f"left open: {leaked}"
            with faults.of((free, "next run")):
                assert runner.run("demo", "go.py").stdout.text == "fine\n"
        with faults.of("folders"):
            assert not scratches(runner)
    faults.assert_none()
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
def test_the_launcher_has_few_descriptors_left(arena: Arena, mode: str) -> None:
    """A request whose descriptors do not fit: a named error, the launcher lives on, and later runs work."""
    arena.script(FINE)
    faults = Faults()
    for free in range(12):
        with faults.of(free), arena.runner(mode) as runner:
            assert runner.run("demo", "go.py").ok
            pid = launcher_pid(runner)
            soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            highest = max(int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()) + 1
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + free, hard))
            result: Any = None
            with contextlib.suppress(SkillrunError):
                result = runner.run("demo", "go.py", timeout=5)
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
            if result is not None and result.error is None:
                assert result.stdout.text == "fine\n", (
                    f"{result.termination} {result.exit_code}, and it never ran"
                )
            assert Path(f"/proc/{pid}").exists(), "the launcher died of it"
            assert result is None or result.error is None or result.error.rule != "launcher-died", (
                "but it lives"
            )
            assert runner.run("demo", "go.py").stdout.text == "fine\n"
            assert launcher_pid(runner) == pid
    faults.assert_none()
    arena.assert_clean()


@pytest.mark.parametrize("state", ["missing", "file", "closed"])
def test_a_temporary_folder_that_can_not_be_used(arena: Arena, state: str) -> None:
    """Not there, not a folder, not writable: a SkillrunError that names the folder, nothing left."""
    arena.script(FINE)
    place = arena.root / "bad"
    if state == "file":
        place.write_text("x")
    elif state == "closed":
        if os.getuid() == 0:
            place = Path("/proc/self")  # not even root makes folders there
        else:
            place.mkdir(mode=0o500)
    with arena.runner(host=Host(temporary=place)) as runner, pytest.raises(SkillrunError, match=place.name):
        runner.run("demo", "go.py")
    arena.assert_clean()


def test_the_scratch_root_is_removed_by_somebody_else(arena: Arena) -> None:
    """A cleaner of /tmp takes the folder away: the next run works or says so."""
    arena.script(FINE)
    with arena.runner() as runner:
        assert runner.run("demo", "go.py").ok
        shutil.rmtree(runner.launcher.scratch_root)
        try:
            result = runner.run("demo", "go.py")
        except SkillrunError:
            pass
        else:
            assert result.stdout.text == "fine\n"
    arena.assert_clean()


@pytest.mark.parametrize("version", ["other", "silent", "crashing", "missing"])
def test_a_launcher_that_is_not_ours(arena: Arena, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Another version, one that says nothing, one that crashes, no Python: a named error and nothing left."""
    arena.script(FINE)
    fake = arena.root / f"fake-{arena.temporary.name}"
    if version == "missing":
        pass
    elif version == "other":
        fake.write_text(
            f"#!{sys.executable}\nimport json, socket, sys\n"
            "s = socket.socket(fileno=int(sys.argv[4]))\n"
            "s.send(json.dumps(dict(version=99, machine='x', landlock=0, seccomp=False, pid=0)).encode())\ns.recv(9)\n"
        )
    elif version == "silent":
        fake.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(30)\n")
    else:
        fake.write_text("#!/bin/sh\nexit 3\n")
    if fake.exists():
        fake.chmod(0o755)
    monkeypatch.setattr(skillrun.launch.pair.sys, "executable", str(fake))
    monkeypatch.setattr(skillrun.launch.pair, "_HELLO_TIMEOUT", 0.5)
    monkeypatch.setattr(skillrun.launch.pair, "_FAREWELL", 0.5)
    with arena.runner() as runner, pytest.raises(SkillrunError, match="launcher"):
        runner.run("demo", "go.py")
    assert not marked(fake.name)
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
def test_the_host_forks(arena: Arena, mode: str) -> None:
    """A forked copy of the program gets a launcher of its own, and the parent's keeps working."""
    arena.script("import os\nprint(os.getppid())\n")
    with arena.runner(mode) as runner:
        first = runner.run("demo", "go.py").stdout.text
        mine = launcher_pid(runner)
        pid = os.fork()
        if pid == 0:
            code = 1
            with contextlib.suppress(BaseException):
                other = runner.run("demo", "go.py").stdout.text
                fine = other.strip().isdigit() and launcher_pid(runner) != mine
                runner.close()
                code = 0 if fine else 2
            os._exit(code)
        assert runner.run("demo", "go.py").stdout.text.strip().isdigit()
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert launcher_pid(runner) == mine
        assert runner.run("demo", "go.py").stdout.text.strip().isdigit()
        assert first.strip().isdigit()
    arena.assert_clean()


def test_the_host_forks_during_a_run(arena: Arena) -> None:
    """The copy closes its runner while the parent's run is under way: that run goes on."""
    arena.script("import time\nprint('ready', flush=True)\ntime.sleep(0.5)\nprint('end')\n")
    with arena.runner() as runner:
        run = Background(runner, timeout=20)
        run.await_ready()
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                runner.close()
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        result = run.result(within=5)
        assert (result.termination, result.stdout.text) == (Termination.EXITED, "ready\nend\n")
    arena.assert_clean()


def test_the_host_forks_while_another_thread_holds_the_lock(arena: Arena) -> None:
    """A lock that a thread held at the fork is held for ever in the copy: the copy must not wait for it."""
    arena.script(FINE)
    with arena.runner() as runner:
        runner.launcher.start()
        held, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            with runner.launcher._lock:
                held.set()
                let_go.wait(20)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(5)
        pid = os.fork()
        if pid == 0:
            import signal

            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(5)
            with contextlib.suppress(BaseException):
                fine = runner.run("demo", "go.py").stdout.text == "fine\n"
                runner.close()
                os._exit(0 if fine else 2)
            os._exit(1)
        status = os.waitpid(pid, 0)[1]
        let_go.set()
        thread.join()
        assert os.waitstatus_to_exitcode(status) == 0
    arena.assert_clean()


@pytest.mark.parametrize("deed", ["changed", "replaced", "removed", "cwd"])
@pytest.mark.parametrize("mode", MODES)
def test_the_script_changes_between_plan_and_start(arena: Arena, mode: str, deed: str) -> None:
    """What was planned is what is started, or nothing is: the error names the path."""
    script = arena.script(FINE)

    def disturb(*_: object) -> None:
        if deed == "changed":
            script.write_text(script.read_text().replace("fine", "evil"))
        elif deed == "replaced":
            script.rename(script.with_name("old"))
            script.write_text("#!/bin/sh\necho evil\n")
            script.chmod(0o755)
        elif deed == "removed":
            script.unlink()
        else:
            arena.workspace.rename(arena.root / "moved")
            arena.workspace.mkdir()

    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.py", on_plan=disturb)
    assert result.termination is Termination.FAILED_TO_START
    assert result.stdout.text == ""
    assert result.error is not None
    assert (str(arena.workspace) if deed == "cwd" else str(script)) in result.error.message
    if deed == "cwd":
        (arena.root / "moved" / "out").rename(arena.workspace / "out")
    arena.assert_clean()


def test_the_end_of_the_launcher_with_no_descriptor_left(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that has no descriptor to wait with waits all the same: nothing of the launcher is left."""
    arena.script(FINE)
    with arena.runner() as runner:
        assert runner.run("demo", "go.py").stdout.text == "fine\n"
        monkeypatch.setattr(os, "pidfd_open", Failing(os.pidfd_open, errno.EMFILE, {1}))
        runner.close()
        monkeypatch.undo()
    arena.assert_clean()


def test_a_try_of_level_2_that_lost_its_launcher_says_nothing_about_this_host(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever kills the warden in the middle of it has no later run refused: it is tried again, by another one."""
    real, tried = skillrun.launch.probing.try_level2, []

    def dying(launcher: Launcher, probe: Probe) -> Probe:
        tried.append(probe)
        if len(tried) > 1:
            return real(launcher, probe)
        warden = launcher._pair.warden  # type: ignore[union-attr]
        warden.kill()
        assert eventually(lambda: warden.poll() is not None)
        return replace(probe, level2_failure="the launcher died of it")

    with arena.runner("confined") as runner:
        known = runner.launcher.probe()
    monkeypatch.setattr(skillrun.launch.probing, "try_level2", dying)
    with arena.runner("confined") as runner:
        assert runner.launcher.probe() == known
    assert len(tried) == 2
    arena.assert_clean()
