"""Interrupts: Ctrl-C, TERM and a closed terminal end the run first, then skillrun, with nothing left behind."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """Somebody stopped skillrun. Not a KeyboardInterrupt: click would turn that into an exit code of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """128 and the signal, as a shell says it: 130 for Ctrl-C, 143 for TERM."""
        return 128 + self.number

    @property
    def reason(self) -> str:
        """Name what stopped it."""
        return {signal.SIGINT: "Ctrl-C", signal.SIGHUP: "the closed terminal"}.get(
            signal.Signals(self.number), signal.Signals(self.number).name
        )


class Interrupts:
    """The first signal raises Stopped in the main thread; later ones change nothing.

    A second Ctrl-C must not cut the clean-up short: the tree gets its grace of at most 2 s and is then
    killed anyway, so there is nothing to hurry.
    """

    def __init__(self) -> None:
        self._held = False
        self._pending: int | None = None
        self._stopping = False
        self._taken: list[signal.Signals] = []

    @property
    def stopping(self) -> bool:
        """Whether a signal has come."""
        return self._stopping

    def install(self) -> None:
        """Take over the signals, except those that whoever started us had ignored (`nohup`)."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._arrived)
                self._taken.append(number)

    def retire(self) -> None:
        """Ignore later signals: all that is left is to exit.

        By the kernel, since Python takes its own handlers away before it is gone, and a second Ctrl-C would
        then change the exit code.
        """
        self._stopping = True
        for number in self._taken:
            signal.signal(number, signal.SIG_IGN)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Put a signal off until the block is over, for what must not be left half done."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            if self._pending is not None and not self._stopping:
                self._stopping = True
                raise Stopped(self._pending)

    def _arrived(self, number: int, _frame: FrameType | None) -> None:
        if self._stopping:
            return
        if self._held:
            self._pending = number
            return
        self._stopping = True
        raise Stopped(number)
