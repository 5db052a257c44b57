"""Crowds: a script that makes the dead as fast as they are reaped holds nobody up, and no signal goes to a stranger."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from skillrun.confine import calls, init, spare, supervise, warden
from skillrun.confine.launcher import Launcher
from skillrun.confine.run import Run
from skillrun.confine.stock import Stock

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the launcher runs on Linux")

MOST = 10 * supervise.BATCH  # beyond that a loop has no end


class Crowd:
    """Children that are dead as often as somebody asks."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self) -> None:
        """Count a question; fail when there is no end to them."""
        self.asked += 1
        assert self.asked < MOST, "it goes on for as long as there are more"

    def waitid(self, *_: object) -> Any:
        """Be `os.waitid`."""
        self.ask()
        return SimpleNamespace(si_pid=4_000_000, si_code=os.CLD_EXITED, si_status=0)

    def waitpid(self, *_: object) -> tuple[int, int]:
        """Be `os.waitpid`."""
        self.ask()
        return 4_000_000, 0

    def wait4(self, *_: object) -> tuple[int, int, None]:
        """Be `os.wait4`."""
        self.ask()
        return 4_000_000, 0, None


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> Crowd:
    """Give a crowd in place of this process's children."""
    made = Crowd()
    for name in ("waitid", "waitpid", "wait4"):
        monkeypatch.setattr(os, name, getattr(made, name))
    return made


class Enough(Exception):  # noqa: N818 - it is no error
    """What a loop is left with that has come to look at something else."""


def enough(*_: object, **__: object) -> Any:
    """Leave the loop."""
    raise Enough


def test_a_sweep_of_the_launcher_ends(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on after the clocks were looked at, and until then the launcher does not sleep."""
    launcher = object.__new__(Launcher)
    reading, writing = os.pipe2(os.O_NONBLOCK)
    launcher._wake, launcher._runs, launcher._stock = reading, {}, Stock(-1, select.poll())
    monkeypatch.setattr(Launcher, "_run_of", lambda *_: None)
    launcher._sweep()
    assert launcher._unswept
    assert launcher._patience() == 0
    monkeypatch.setattr(os, "waitid", lambda *_: None)
    launcher._sweep()
    assert not launcher._unswept
    os.close(reading)
    os.close(writing)


def test_the_proof_that_a_group_is_gone_takes_its_time(crowd: Crowd) -> None:
    """So many members are reaped at once, and the run is not over before there is none."""
    run = object.__new__(Run)
    run.reaped, run.mode, run.pid, run.leftovers = True, "group", 4_000_000, 0
    assert not run.over()
    assert crowd.asked == supervise.BATCH


def test_a_supervisor_hears_a_signal_in_a_crowd(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks whether it was told to end the tree."""
    monkeypatch.setattr(supervise, "_drain", enough)
    reading, writing = os.pipe()
    with pytest.raises(Enough):
        supervise._wait(1, reading, 1.0)
    os.close(reading)
    os.close(writing)


def test_an_init_hears_a_signal_in_a_crowd(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks for word from outside."""
    looks: Iterator[Any] = iter([None, SimpleNamespace(si_signo=signal.SIGTERM, si_pid=0, si_code=0)])
    monkeypatch.setattr(signal, "sigtimedwait", lambda *_: next(looks))
    monkeypatch.setattr(init, "_ask_all", enough)
    with pytest.raises(Enough):
        init._wait(1)


@pytest.mark.parametrize(
    ("word", "heard"),
    [
        ((signal.SIGTERM, 0, 0), True),
        ((signal.SIGTERM, 7, 0), False),  # the script's own
        ((signal.SIGTERM, 0, -1), False),  # the script's, made up to look like ours
        ((signal.SIGCHLD, 0, 0), False),
    ],
)
def test_an_init_heeds_who_is_outside(
    monkeypatch: pytest.MonkeyPatch,
    word: tuple[int, int, int],
    heard: bool,  # noqa: FBT001
) -> None:
    """A script can signal its init, and is not asked to end for that."""
    asked: list[int] = []
    monkeypatch.setattr(init, "_ask_all", lambda: asked.append(1))
    number, pid, code = word
    init._heed(SimpleNamespace(si_signo=number, si_pid=pid, si_code=code))  # type: ignore[arg-type]
    init._heed(None)
    assert asked == [1] * heard


@pytest.mark.parametrize(("level", "blocked"), [(1, False), (2, True)])
def test_an_init_is_cloned_with_its_signals_blocked(
    monkeypatch: pytest.MonkeyPatch,
    level: int,
    blocked: bool,  # noqa: FBT001
) -> None:
    """What comes while it is being made waits for it; the launcher itself goes on hearing them."""
    masks: list[set[int]] = []

    def clone(_: int) -> int:
        masks.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
        return 7

    monkeypatch.setattr(calls, "clone", clone)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert spare._clone({"level": level, "network": False}) == 7
    assert (masks[0] >= init.AWAITED) is blocked
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_the_launcher_goes_on_with_its_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing wakes it for those that the last sweep left."""
    launcher = object.__new__(Launcher)
    launcher._poll, launcher._runs, launcher._unswept = SimpleNamespace(poll=lambda _: []), {}, True  # type: ignore[assignment]
    launcher._spot, launcher._stocking, launcher._worlds = 0, None, []
    launcher._stock = Stock(-1, select.poll())
    swept: list[int] = []
    monkeypatch.setattr(Launcher, "_sweep", lambda _: swept.append(1))
    assert launcher._step()
    assert swept == [1]


@pytest.mark.parametrize("bury", ["warden.bury", "supervise.end_tree"])
def test_burying_many_dead_is_no_more_work_than_there_are(bury: str) -> None:
    """They are reaped as often as they are listed: else a storm of some thousands would take minutes to clear."""
    count = 4 * supervise.BATCH
    program = f"""
import os, sys
sys.path.insert(0, {str(Path(supervise.__file__).parents[2])!r})
from skillrun.confine import supervise, warden
for _ in range({count}):
    if os.fork() == 0: os._exit(0)
while sum(known is not None and known[0] for known in map(supervise.status, supervise.children(os.getpid(), os.getpid()))): pass
listed = []
children = supervise.children
supervise.children = lambda *a: (a[0] == os.getpid() and listed.append(1)) or children(*a)
{bury}()
print(len(listed))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 3


@pytest.mark.parametrize("bury", [warden.bury, supervise.end_tree])
def test_who_buries_kills_again_in_a_crowd(bury: Any, crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes the dead is killed in the next round, and not after the last of them."""
    rounds = iter([[], [], enough])
    monkeypatch.setattr(supervise, "below", lambda *_: iter(()))

    def children(*_: object) -> list[int]:
        found = next(rounds)
        return found if isinstance(found, list) else found()

    monkeypatch.setattr(supervise, "children", children)
    monkeypatch.setattr(supervise, "signal_tree", children)
    with pytest.raises(Enough):
        bury()


def test_a_signal_goes_to_nobody_elses_child() -> None:
    """A number from a list may be a stranger's by now: who is not below us gets nothing, who is gets it."""
    with subprocess.Popen(["sleep", "60"]) as process:
        assert not supervise.send(process.pid, signal.SIGKILL, ours={1})
        assert process.poll() is None
        assert supervise.send(process.pid, signal.SIGKILL, ours={os.getpid()})
        assert process.wait(10) == -signal.SIGKILL
    assert not supervise.send(process.pid, signal.SIGKILL, ours={os.getpid()})


def test_a_group_is_found_by_its_dead() -> None:
    """Of processes that replace themselves all the time none lives long enough to be hit; those that have ended tell the group."""
    program = (
        "import os, time\nif os.fork() == 0:\n    os.setpgid(0, 0)\n    member = os.fork()\n    if member: print(member, flush=True)\n"
        "    if member: os._exit(0)\n    time.sleep(60)\nos.close(1)\ntime.sleep(60)"
    )
    calls.prctl(calls.PR_SET_CHILD_SUBREAPER, 1)
    try:
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            member = int(process.stdout.readline())
            dead = next(iter(supervise.descendants(process.pid)))
            while (known := supervise.status(dead)) is not None and known[0]:
                pass
            os.kill(process.pid, signal.SIGKILL)  # now the dead one is ours
            process.wait(10)
            assert supervise.status(member) == (True, os.getpid())
            supervise.bury([dead], own_group=os.getpgrp())
            assert os.waitstatus_to_exitcode(os.waitpid(member, 0)[1]) == -signal.SIGKILL
            os.waitpid(dead, 0)
    finally:
        calls.prctl(calls.PR_SET_CHILD_SUBREAPER, 0)


def test_burying_kills_who_is_below_and_nobody_else() -> None:
    """A process with a child in a session of its own goes, and one beside it stays."""
    parent = "import subprocess, time\nprint(subprocess.Popen(['sleep', '60'], start_new_session=True).pid, flush=True)\ntime.sleep(60)"
    with (
        subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process,
        subprocess.Popen(["sleep", "60"]) as beside,
    ):
        assert process.stdout is not None
        child = int(process.stdout.readline())
        calls.prctl(calls.PR_SET_CHILD_SUBREAPER, 1)  # as launcher and warden are
        try:
            supervise.bury([process.pid], own_group=os.getpgrp())
            assert process.wait(10) == -signal.SIGKILL
            supervise.bury(
                [child], own_group=os.getpgrp()
            )  # an orphan in the next round, unless it was hit in the first
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        finally:
            calls.prctl(calls.PR_SET_CHILD_SUBREAPER, 0)
        assert beside.poll() is None
        beside.kill()
