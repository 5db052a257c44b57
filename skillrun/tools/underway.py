"""Underway: how whoever makes a call looks at the run that it starts before it starts, and ends it."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillrun.launch.drive import Drive
    from skillrun.launch.ready import Ready
    from skillrun.sandbox.backend import LaunchPlan


class Underway:
    """The run of one call. `cancel` may be called from any thread, also before the run has begun.

    `look` is given what is about to start. When it raises, nothing starts: a model reads a ToolError, an operator
    the rest.
    """

    def __init__(self, look: Callable[[Ready, LaunchPlan], None] | None = None) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._end: Callable[[], object] | None = None
        self._cancelled = False

    def planned(self, ready: Ready, plan: LaunchPlan) -> None:
        """Take what is about to start."""
        if self._look is not None:
            self._look(ready, plan)

    def driven(self, drive: Drive) -> None:
        """Take what can end a script's run."""
        self.ending(drive.cancel)

    def ending(self, end: Callable[[], object]) -> None:
        """Take what ends the work; a cancel that came before is passed on."""
        with self._lock:
            self._end = end
            cancelled = self._cancelled
        if cancelled:
            end()

    def cancel(self) -> None:
        """Ask for the run to be ended: its tree gets the grace, then SIGKILL."""
        with self._lock:
            self._cancelled = True
            end = self._end
        if end is not None:
            end()


_current: contextvars.ContextVar[Underway | None] = contextvars.ContextVar("underway", default=None)


def underway() -> Underway:
    """Return the run that the caller of this thread watches, else one that nobody does."""
    return _current.get() or Underway()


@contextlib.contextmanager
def watched(run: Underway) -> Iterator[None]:
    """Let a run be watched and ended by whoever holds `run`, for calls made in this block."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)
