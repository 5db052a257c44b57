"""Crowds: a script that makes the dead as fast as they are reaped holds nobody up, and no signal goes to a stranger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from skillrun.confine import init, supervise, warden
from skillrun.confine.launcher import Launcher
from skillrun.confine.run import Run

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
    launcher._wake, launcher._runs, launcher._spare = reading, {}, None
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
    looks: Iterator[Any] = iter([None, SimpleNamespace(si_signo=signal.SIGTERM, si_pid=0)])
    monkeypatch.setattr(signal, "sigtimedwait", lambda *_: next(looks))
    monkeypatch.setattr(init, "_ask_all", enough)
    with pytest.raises(Enough):
        init._wait(1)


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


def test_burying_kills_who_is_below_and_nobody_else() -> None:
    """A process with a child in a session of its own goes, and one beside it stays."""
    parent = "import subprocess, time\nprint(subprocess.Popen(['sleep', '60'], start_new_session=True).pid, flush=True)\ntime.sleep(60)"
    with (
        subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process,
        subprocess.Popen(["sleep", "60"]) as beside,
    ):
        assert process.stdout is not None
        child = os.pidfd_open(int(process.stdout.readline()))
        supervise.bury([process.pid], own_group=os.getpgrp())
        assert process.wait(10) == -signal.SIGKILL
        assert __import__("select").select([child], [], [], 10)[0], "its child lives"
        os.close(child)
        assert beside.poll() is None
        beside.kill()
