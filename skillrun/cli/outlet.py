"""Outlet: a script's output on its way to ours, byte for byte."""

from __future__ import annotations

import contextlib
import os
import select
from typing import TYPE_CHECKING

from skillrun.launch.capture import Captured, Keep, PassOn

if TYPE_CHECKING:
    from skillrun.cli.interrupts import Interrupts


class Outlet(PassOn):
    """Passes bytes on until somebody stops skillrun; then only what is taken at once.

    `overheard` bytes of it are kept, to see what a script that fails complains of. A reader that takes nothing, such as a pager that waits for a key, must not keep the end of a run
    from coming.
    """

    def __init__(self, descriptor: int, interrupts: Interrupts, *, overheard: int = 0) -> None:
        super().__init__(descriptor)
        self._overheard = Keep(overheard)
        self._output = descriptor
        self._interrupts = interrupts

    def ready(self) -> int | None:
        """Return the descriptor to wait for, None when nothing is waited for any more."""
        return None if self._interrupts.stopping else super().ready()

    def room(self) -> int:
        """Return how much may come at once; a pipe takes this much whole when it takes anything (PIPE_BUF)."""
        return min(super().room(), 4096) if self._interrupts.stopping else super().room()

    def feed(self, chunk: bytes) -> None:
        """Write it; after a stop drop what does not fit at once."""
        self._overheard.feed(chunk)
        if not self._interrupts.stopping:
            super().feed(chunk)
            return
        poll = select.poll()
        poll.register(self._output, select.POLLOUT)
        with contextlib.suppress(OSError):
            if poll.poll(0):
                os.write(self._output, chunk)

    def captured(self) -> Captured:
        """Describe what came, all of it passed on, with what was overheard."""
        heard = self._overheard.captured()
        return Captured(heard.text, heard.bytes, truncated=False)
