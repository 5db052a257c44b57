"""Admission: how many runs there may be at once, who is next, and who is sent away."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skillrun.errors import AdmissionError, UsageError
from skillrun.problem import error
from skillrun.running.own import Own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

AT_ONCE: Final = 32
"""Runs at once by default. A run holds six descriptors here and two in the launcher; 1,024 are usual."""
WAITING: Final = 1_000
"""Callers that may wait by default: a bound on memory, not a promise of time."""


class Turn:
    """A place in the queue, then a place inside; `leave` gives back whichever it is, once."""

    __slots__ = ("_door", "_taken", "inside", "refusal")

    def __init__(self, door: _Door, taken: Callable[[Turn], bool]) -> None:
        self._door = door
        self._taken = taken
        self.inside = False
        self.refusal: AdmissionError | None = None

    def call(self) -> bool:
        """Tell the owner that it is its turn, or that there will be none; return whether a turn is used."""
        return self._taken(self)

    def leave(self) -> bool:
        """Give the place back and let the next one in; return whether this one was still waiting."""
        door = self._door
        with door.lock:
            if self in door.queue:
                del door.queue[self]
                return True
            following = door.replaced(self)
        while following is not None and not following.call():
            with door.lock:
                following = door.replaced(following)
        return False


@dataclass(slots=True)
class _Door:
    """The state of one process: who is inside and who waits, the longest wait first."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    inside: int = 0
    queue: OrderedDict[Turn, None] = field(default_factory=OrderedDict)

    def replaced(self, turn: Turn) -> Turn | None:
        """Take one out and the longest waiting in; None when nobody waits or it was not inside. The lock is held."""
        if not turn.inside:
            return None
        turn.inside = False
        if not self.queue:
            self.inside -= 1
            return None
        following, _ = self.queue.popitem(last=False)
        following.inside = True
        return following


class Admission:
    """Lets at most `at_once` in, the others in the order in which they came, and at most `waiting` of them wait.

    Thread-safe; a forked copy of the process starts with nobody inside.
    """

    def __init__(self, *, at_once: int, waiting: int) -> None:
        if at_once < 1 or waiting < 0:
            message = f"{at_once} runs at once with {waiting} waiting is no number of runs"
            raise UsageError(
                error("at-once", message, help="allow at least one run, and none or more to wait")
            )
        self._at_once = at_once
        self._waiting = waiting
        self._door: Own[_Door] = Own(_Door)

    def ask(self, taken: Callable[[Turn], bool]) -> Turn:
        """Queue up. `taken` is called once: here when there is room, else by whoever makes room.

        It gets the turn and says whether it is used; `refusal` is set on it when there will be none. Raises
        AdmissionError when too many wait.
        """
        door = self._door.get()
        turn = Turn(door, taken)
        with door.lock:
            if door.inside >= self._at_once:
                if len(door.queue) >= self._waiting:
                    raise self._full(door)
                door.queue[turn] = None
                return turn
            door.inside += 1
            turn.inside = True
        if not turn.call():
            turn.leave()
        return turn

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait in this thread for a turn and hold it. Raises AdmissionError when there will be none."""
        called = threading.Event()

        def taken(_: Turn) -> bool:
            called.set()
            return True

        turn = self.ask(taken)
        try:
            if not turn.inside:
                called.wait()
            if turn.refusal is not None:
                raise turn.refusal
            yield
        finally:
            turn.leave()

    def close(self) -> None:
        """Send away everybody who waits."""
        door = self._door.get()
        while True:
            with door.lock:
                if not door.queue:
                    return
                turn, _ = door.queue.popitem(last=False)
            turn.refusal = AdmissionError(
                error("runner-closed", "the runner was closed before it was this run's turn")
            )
            turn.call()

    def _full(self, door: _Door) -> AdmissionError:
        message = f"{door.inside} runs are under way and {len(door.queue)} wait, and no more may"
        return AdmissionError(
            error(
                "too-many-runs",
                message,
                help="try again later, or raise `at_once` or `waiting` of the Runner",
            )
        )
