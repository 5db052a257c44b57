"""Faults of the host, one at a time and through a seam: full disk, no memory, no process, a launcher gone at each stage.

Each is an error with a name, loses nothing, starts nothing twice, and the next run works.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from arena import MODES, Faults, Holdings, eventually, launcher_pid, scratches

import skillrun.launch.drive
import skillrun.launch.scratch
import skillrun.runner
from skillrun import SkillrunError, Termination
from skillrun.confine.trees import remove_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from arena import Arena

    from skillrun import Runner

ROOM = Path(skillrun.runner.__file__).parent
NOTE = "import os\nwith open(os.environ['WORKSPACE'] + '/out/started', 'a') as file: file.write('x')\nprint('fine')\n"


def failing(original: Callable[..., Any], number: int) -> Callable[..., Any]:
    """Return a call that fails with an errno the first time."""
    left = [1]

    def call(*arguments: Any, **named: Any) -> Any:
        if left and left.pop():
            raise OSError(number, os.strerror(number))
        return original(*arguments, **named)

    return call


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EROFS, errno.EIO], ids=errno.errorcode.get
)
def test_the_disk_is_full_or_broken(arena: Arena, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Wherever skillrun makes a folder or a file of its own: a named error, nothing left, and the next run works."""
    arena.script(NOTE)
    faults = Faults()
    before = Holdings.now()
    seams: tuple[tuple[Any, str], ...] = (
        (tempfile, "mkdtemp"), (os, "mkdir"), (os, "memfd_create"), (os, "pipe"), (os, "write"), (subprocess, "Popen"),
    )  # fmt: skip
    for owner, name in seams:
        if name == "pipe" and number != errno.ENOMEM:
            continue  # pipes have no disk (pipe(2))
        with arena.runner() as runner:
            if name in {"memfd_create", "pipe", "write"}:
                runner.launcher.start()
            problem: Any = None
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, failing(getattr(owner, name), number))
                try:
                    runner.run("demo")
                except BaseException as caught:  # noqa: BLE001 - judged below
                    problem = caught
            with faults.of((name, "named")):
                assert isinstance(problem, SkillrunError), repr(problem)
                assert problem.problem.message
            with faults.of((name, "next run")):
                assert runner.run("demo").stdout.text == "fine\n"
                assert not scratches(runner)
        problem = None
    faults.assert_none()
    assert not before.leaked()
    assert (arena.out / "started").read_text() == "x" * (len(seams) - (number != errno.ENOMEM))
    arena.assert_clean()


STAGES = {
    "found": ("skillrun.running.lookup", "identity"),
    "decided": ("skillrun.running.lookup", "Place"),
    "searched": ("skillrun.running.pipeline", "search"),
    "surveyed": ("skillrun.running.pipeline", "survey"),
    "to be driven": ("skillrun.running.pipeline", "Drive"),
    "pipes made": ("skillrun.launch.drive", "make_room"),
    "asked for": ("skillrun.launch.drive", "Pump"),
    "over": ("skillrun.running.pipeline", "violations"),
    "judged": ("skillrun.running.pipeline", "judge"),
    "scratch removed": ("skillrun.launch.scratches", "remove_scratch"),
}


@pytest.mark.parametrize("mode", MODES)
def test_the_launcher_is_killed_at_each_stage(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Before, during and after: an error with a name or what the run had; never a second start; then all is well."""
    import importlib

    arena.script(NOTE)
    faults = Faults()
    reached: list[str] = []
    for stage, (module, name) in STAGES.items():
        (arena.out / "started").unlink(missing_ok=True)
        with arena.runner(mode) as runner, faults.of(stage):
            assert runner.run("demo").ok
            (arena.out / "started").unlink()
            original = getattr(importlib.import_module(module), name)

            def killing(
                *arguments: Any,
                original: Any = original,
                runner: Runner = runner,
                stage: str = stage,
                **named: Any,
            ) -> Any:
                pair = runner.launcher._pair
                assert pair is not None
                reached.append(stage)
                os.kill(launcher_pid(runner), signal.SIGKILL)
                assert eventually(lambda: not pair.serves())
                return original(*arguments, **named)

            how = ""
            with monkeypatch.context() as patch:
                patch.setattr(f"{module}.{name}", killing)
                try:
                    result = runner.run("demo", timeout=20)
                    how = result.termination.value if result.error is None else result.error.rule
                except SkillrunError as problem:
                    how = problem.problem.rule
            known = {"launcher-gone", "launcher-died", "scratch-folder", "setup-failed"}
            assert how in known | {Termination.EXITED.value, Termination.CANCELLED.value}, how
            started = (arena.out / "started").read_text() if (arena.out / "started").exists() else ""
            assert started in {"", "x"}
            if how == "exited":
                assert started == "x"
            arena.assert_dead()
            assert runner.run("demo").stdout.text == "fine\n"
    faults.assert_none()
    assert set(reached) == set(STAGES)
    arena.assert_clean()


@contextlib.contextmanager
def no_more_processes(pid: int) -> Iterator[None]:
    """Let a process fork no more, by a control group; skip where none can be made."""
    group = Path("/sys/fs/cgroup/pids") / f"skillrun-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as problem:
        pytest.skip(f"no control group of processes can be made here: {problem}")
    home = Path("/sys/fs/cgroup/pids/cgroup.procs")
    try:
        (group / "cgroup.procs").write_text(str(pid))
        (group / "pids.max").write_text("0")
        yield
    finally:
        (group / "pids.max").write_text("max")
        assert eventually(lambda: emptied(group, home))  # again and again: the launcher can fork now
        group.rmdir()


def emptied(group: Path, home: Path) -> bool:
    """Move every process of a control group away, and return whether none was left."""
    left = (group / "cgroup.procs").read_text().split()
    for line in left:
        with contextlib.suppress(OSError):
            home.write_text(line)
    return not left


@pytest.mark.parametrize("mode", MODES)
def test_the_launcher_can_not_fork(arena: Arena, mode: str) -> None:
    """Without a process to be had the run fails to start, by that name, and the launcher lives on."""
    arena.script(NOTE)
    with arena.runner(mode) as runner:
        assert runner.run("demo").ok
        pid = launcher_pid(runner)
        with no_more_processes(pid):
            results = [runner.run("demo", timeout=20) for _ in range(3)]  # the first may still have the spare
        assert [result.termination for result in results[1:]] == [Termination.FAILED_TO_START] * 2
        problem = results[-1].error
        assert problem is not None
        assert "temporarily unavailable" in problem.message
        assert runner.run("demo").ok
        assert launcher_pid(runner) == pid
    arena.assert_clean()


def test_no_clock_that_can_jump_is_read() -> None:
    """Deadlines are by the monotonic clock alone: no module of launch or confine knows the time of day.

    Two do, to ask macOS's log, which has no other clock: a jump loses denials there, and moves no deadline.
    """
    wall = re.compile(r"\btime\.(time|ctime|localtime|gmtime)\(|datetime|CLOCK_REALTIME")
    read = [
        path.name
        for room in ("launch", "confine", "running")
        for path in (ROOM / room).glob("*.py")
        if wall.search(path.read_text())
    ]
    assert sorted(read) == ["system_log.py", "watch.py"]


def test_the_clock_jumps(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of day goes back and forth by years during a run: it takes its time, and no deadline moves."""
    arena.script("import time; time.sleep(0.3); print('fine')")
    jumps = iter([0.0, 1e10, -1e10] * 1000)
    monkeypatch.setattr(time, "time", lambda: next(jumps, 0.0))
    with arena.runner() as runner:
        assert runner.run("demo", timeout=30).stdout.text == "fine\n"
        assert runner.run("demo", timeout=0.05).termination is Termination.TIMED_OUT
    arena.assert_clean()


@pytest.mark.parametrize(
    "count",
    [20_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])],
)
def test_very_many_files_are_left_in_scratch(arena: Arena, count: int) -> None:
    """All of them are gone when the result is there, and the result is right."""
    arena.script(
        f"import os\nos.chdir(os.environ['TMPDIR'])\nfor n in range({count}):\n"
        "    if n % 10_000 == 0:\n        os.mkdir(f'd{n}'); os.chdir(f'd{n}') if n % 50_000 else None\n"
        "    os.close(os.open(f'f{n}', os.O_CREAT | os.O_WRONLY))\nprint('fine')"
    )
    # Making a million files takes a busy machine longer than the hundred seconds of the others.
    for path in (arena.ceiling, arena.skills / "demo" / "SKILL.md"):
        path.write_text(path.read_text().replace("timeout: 100", "timeout: 900"))
    with arena.runner() as runner:
        result = runner.run("demo")
        assert result.stdout.text == "fine\n", result
        assert not scratches(runner)
    arena.assert_clean()


def test_a_root_that_a_run_filled_again_is_removed_later(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was on its way when its launcher died makes its folders anew: they are gone with the next launcher."""
    arena.script("print('fine')")
    removed: list[str] = []

    def late(root: str) -> bool:
        removed.append(root)
        gone = remove_root(root)
        if len(removed) == 1:  # the run's own thread, a moment behind
            Path(root, "runs").mkdir(parents=True)
            return False
        return gone

    monkeypatch.setattr("skillrun.launch.launcher.remove_root", late)
    with arena.runner() as runner:
        runner.launcher.start()
        pair = runner.launcher._pair
        os.kill(pair.hello["pid"], signal.SIGKILL)
        assert eventually(lambda: not pair.serves())
        assert runner.run("demo").stdout.text == "fine\n"
        assert removed
    assert len(set(removed)) == 2
    arena.assert_clean()
