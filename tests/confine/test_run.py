"""Run: who is asked to end, and who is ended without being asked."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING

import pytest

from skillrun.confine.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator


class Told(Run):
    """A run that notes its signals instead of sending them."""

    signals: list[int]

    def _signal(self, number: int) -> None:
        self.signals.append(number)


@pytest.fixture(params=["group", "init"])
def told(request: pytest.FixtureRequest) -> Iterator[Told]:
    """Give a run that has not been started."""
    ours, theirs = socket.socketpair()
    terms = {"mode": request.param, "announce": False, "grace": 2, "timeout": 60, "memory": 1, "processes": 1}
    run = Told(terms, control=ours)
    run.signals = []
    yield run
    run.give_up()
    ours.close()
    theirs.close()


def test_a_run_is_asked_once_and_then_has_its_grace(told: Told) -> None:
    """TERM, and CONT for whoever is stopped; a second wish changes nothing, and the reason stays the first one."""
    told.end("timed_out")
    hard = told.hard
    told.end("cancelled")
    assert (told.signals, told.hard, told.reason) == ([signal.SIGTERM, signal.SIGCONT], hard, "timed_out")


def test_a_run_without_grace_is_ended_at_once(told: Told) -> None:
    """Nobody is asked who has no time to answer: the first signal is KILL, and a second wish sends no other."""
    told.grace = 0.0
    told.end("cancelled")
    told.end("cancelled")
    assert told.signals == [signal.SIGKILL]


def test_a_run_that_nobody_waits_for_is_ended_at_once(told: Told) -> None:
    """Whoever waited is gone: KILL, also in the middle of the grace."""
    told.end("cancelled")
    told.end("cancelled", now=True)
    assert told.signals == [signal.SIGTERM, signal.SIGCONT, signal.SIGKILL]
