"""In flight: the requests that are not answered yet, each id once, and not more of them than memory holds.

A second request with an id that is under way is refused (MCP: an id must not have been used before): which of two
answers belongs to whom nobody could tell, and a cancel would reach one of them. `7` and `"7"` count as one id, since
the SDK and other implementations take them for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import mcp_types as types

if TYPE_CHECKING:
    from collections.abc import Hashable

MOST: Final = 2_000
"""Requests; more than may wait for their turn as calls."""
MOST_BYTES: Final = 256 << 20
"""Bytes of all of them as they came."""


class InFlight:
    """The requests of one connection, or of one port: what is told apart by `whose`."""

    def __init__(self) -> None:
        self._sizes: dict[Hashable, int] = {}
        self._bytes = 0

    def begin(self, request: types.RequestId, size: int, *, whose: str = "") -> types.ErrorData | None:
        """Take a request of so many bytes, or return why it is refused."""
        key = whose, told_apart(request)
        if key in self._sizes:
            message = "A request with this id is under way; every request needs an id of its own"
            return types.ErrorData(code=types.INVALID_REQUEST, message=message)
        if self._sizes and (len(self._sizes) >= MOST or self._bytes + size > MOST_BYTES):
            return types.ErrorData(code=types.INTERNAL_ERROR, message="Too many requests are under way")
        self._sizes[key] = size
        self._bytes += size
        return None

    def end(self, request: types.RequestId, *, whose: str = "") -> None:
        """Let a request go: it was answered, or never will be. One that is not there is none of ours."""
        self._bytes -= self._sizes.pop((whose, told_apart(request)), 0)


def told_apart(request: types.RequestId) -> types.RequestId:
    """Return what the SDK tells ids apart by: a text that is a number is that number."""
    try:
        return int(request)
    except ValueError:
        return request
