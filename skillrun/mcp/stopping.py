"""Stopping: signals end the server from inside its loop, so that every run is ended before it."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def on_signal(stop: Callable[[int], object]) -> Iterator[None]:
    """Have `stop` called with the number of the first signal; those that were ignored stay so (`nohup`).

    The handlers that were there come back: an exception out of a signal handler would be swallowed by the
    loop's callbacks, so the command line's own can't be left in place.
    """
    before = {
        number: handler
        for number in _SIGNALS
        if (handler := signal.getsignal(number)) is not signal.SIG_IGN and handler is not None
    }

    def arrived(number: int, _frame: FrameType | None) -> None:
        stop(number)

    for number in before:
        signal.signal(number, arrived)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
