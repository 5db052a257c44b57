"""Patience: how long, and how often, a port waits for somebody who has not sent a whole request.

Every user of this machine can open connections, long before a token is looked at. Whoever sends nothing, or one byte
a minute, must not use up our descriptors: a run could not be started any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

SECONDS: Final = 30.0
"""For a whole request, from its first byte to its last; also for a body behind an answer."""
CONNECTIONS: Final = 256
"""At a time. When there are more, the one that has sent no whole request for longest is closed."""


class Patient(H11Protocol):
    """A connection that is closed when it keeps us waiting."""

    transport: asyncio.Transport
    waiting_since: float
    _look: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Begin to wait; too many are one too many."""
        super().connection_made(transport)
        self.waiting_since = self.loop.time()
        self._look = self.loop.call_later(SECONDS, self._looked)
        if len(self.connections) > CONNECTIONS:
            others = [one for one in self.connections if isinstance(one, Patient) and one.waits]
            min(others, key=lambda one: one.waiting_since, default=self).transport.abort()

    @property
    def waits(self) -> bool:
        """Whether the next thing to happen is the client's: nothing whole has come, or all of it is answered."""
        cycle: Any = self.cycle
        return cycle is None or cycle.more_body or cycle.response_complete

    def _looked(self) -> None:
        now = self.loop.time()
        if not self.waits:
            self.waiting_since = now
        if now - self.waiting_since >= SECONDS:
            self.transport.abort()
            return
        left = SECONDS - (now - self.waiting_since)
        self._look = self.loop.call_later(left, self._looked)

    def on_response_complete(self) -> None:
        """Begin to wait anew: the client may send another request."""
        self.waiting_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave off waiting."""
        self._look.cancel()
        super().connection_lost(exc)
