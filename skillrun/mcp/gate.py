"""Gate: who may speak to a server on a port: the right Host, no stranger's Origin, and the token."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


@dataclass(frozen=True, slots=True)
class Gate:
    """An application behind a gate.

    A page in a browser can reach a port of this machine, by its own name for it (DNS rebinding): so the Host has
    to be one of ours, and an Origin, which browsers send and programs do not, has to be ours as well. Every
    other user of this machine can reach the port too: so there is always a token.
    """

    app: ASGIApp
    token: str
    hosts: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here. What is no HTTP request is the server's own (`lifespan`)."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # a web socket: closed by the server that made it
        refusal = self._refusal(scope)
        if refusal is None:
            await self.app(scope, receive, send)
            return
        status, text = refusal
        headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(text)).encode())]
        if status == 401:  # noqa: PLR2004 - HTTP's own number
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    def _refusal(self, scope: Scope) -> tuple[int, bytes] | None:
        def values(name: bytes) -> list[str]:
            return [value.decode("latin-1") for key, value in scope["headers"] if key == name]

        hosts, origins, words = values(b"host"), values(b"origin"), values(b"authorization")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return 421, b"Invalid Host header"
        if any(origin.lower() not in {f"http://{host}" for host in self.hosts} for origin in origins):
            return 403, b"Invalid Origin header"
        kind, _, given = words[0].partition(" ") if len(words) == 1 else ("", "", "")
        # Compared in constant time: the answer's time must not tell how much of a guess was right.
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            return 401, b"Unauthorized"
        return None
