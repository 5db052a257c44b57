"""Once: on a port, too, a request's id is under way once in its session.

The SDK keeps the stream of an answer by the request's id: a second request with it would take the first one's answer
over. In the era of 2026-07-28 each request is its own exchange, and ids may be equal.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.dispatcher import as_request_id
from starlette.responses import JSONResponse

from skillrun.mcp.inflight import InFlight, told_apart

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Once:
    """An application that gets each id of a session once at a time.

    `running` says whether a request of a session is still being worked at: its client may have closed the stream
    and come again with the same id. The body has to come in one piece (the SDK's limit on bodies sees to that).
    """

    def __init__(self, app: ASGIApp, running: Callable[[str, types.RequestId], bool]) -> None:
        self._app = app
        self._running = running
        self._open = InFlight()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it on its own stream."""
        session = _session(scope)
        if session is None:
            await self._app(scope, receive, send)
            return
        first = await receive()
        body = first.get("body", b"")
        asked = _asked(body)
        pending = [first]

        async def again() -> Message:
            return pending.pop() if pending else await receive()

        if asked is None:
            await self._app(scope, again, send)
            return
        wrong = self._open.begin(asked, len(body), whose=session)
        if wrong is None and self._running(session, told_apart(asked)):
            self._open.end(asked, whose=session)
            wrong = types.ErrorData(code=types.INVALID_REQUEST, message="A request with this id is under way")
        if wrong is not None:
            content = {"jsonrpc": "2.0", "id": asked, "error": {"code": wrong.code, "message": wrong.message}}
            await JSONResponse(content, status_code=400)(scope, receive, send)
            return
        try:
            await self._app(scope, again, send)
        finally:
            self._open.end(asked, whose=session)


def _session(scope: Scope) -> str | None:
    """Return the session of a request that has one: those of the era of the handshake."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    found: list[str] = [
        value.decode("latin-1") for key, value in scope["headers"] if key == b"mcp-session-id"
    ]
    return found[0] if found else None


def _asked(body: bytes) -> types.RequestId | None:
    """Return the id of a request, None for anything else: the SDK says what is wrong with it."""
    try:
        given: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return as_request_id(given.get("id")) if isinstance(given, dict) and "method" in given else None
