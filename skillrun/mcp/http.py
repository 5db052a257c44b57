"""Streamable HTTP as a transport: many clients on a port of this machine, each with the token."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from mcp.server.transport_security import (
    DEFAULT_MAX_REQUEST_BODY_SIZE,
    RequestBodyLimitMiddleware,
    TransportSecuritySettings,
)

from skillrun.errors import UsageError
from skillrun.mcp.gate import Gate
from skillrun.mcp.once import Once
from skillrun.mcp.patience import Patient
from skillrun.mcp.stopping import on_signal
from skillrun.mcp.token import token_file
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from starlette.types import ASGIApp

    from skillrun.mcp.server import Service

PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_PARTING = 1  # seconds that open streams get when the server is stopped, before their calls are cancelled


@dataclass(frozen=True, slots=True)
class Bound:
    """A port that is ours: its socket and the names it goes by."""

    listener: socket.socket
    host: str
    port: int

    @property
    def url(self) -> str:
        """The address that a client is given."""
        return f"http://{_bracketed(self.host)}:{self.port}{PATH}"

    @property
    def hosts(self) -> frozenset[str]:
        """What a Host header may say."""
        loopback = self.host == "localhost" or _address(self.host).is_loopback
        names = {*_LOOPBACK, _bracketed(self.host)} if loopback else {_bracketed(self.host)}
        return frozenset(f"{name}:{self.port}".lower() for name in names)


def bind(text: str) -> Bound:
    """Take a port: `PORT`, `HOST:PORT`, 0 for a free one. Raises UsageError for what can't be had.

    The host is an address or `localhost`. One that means every address is refused: then nobody could say
    which Host headers are right.
    """
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isascii() or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004 - the last port
        raise UsageError(error("mcp-port", f"`{text}` is no port", help="write `8080` or `127.0.0.1:8080`"))
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise UsageError(
            error("mcp-port", f"`{host}` is no address", help="write an address, or `localhost`")
        ) from None
    if address.is_unspecified:
        raise UsageError(error("mcp-port", f"`{host}` means every address", help="name the one to listen on"))
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET  # noqa: PLR2004 - a version of IP
    listener = socket.socket(family, socket.SOCK_STREAM | getattr(socket, "SOCK_CLOEXEC", 0))
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((str(address), int(port)))
        listener.listen(128)
    except OSError as wrong:
        listener.close()
        raise UsageError(error("mcp-port", f"`{text}` can't be listened on: {wrong.strerror}")) from None
    return Bound(listener, host, listener.getsockname()[1])


def application(service: Service, token: str, hosts: frozenset[str]) -> ASGIApp:
    """Return the application: the SDK's behind our gate, its own look at Host and Origin left on."""
    security = TransportSecuritySettings(
        allowed_hosts=sorted(hosts), allowed_origins=sorted(f"http://{host}" for host in hosts)
    )
    app = service.server().streamable_http_app(streamable_http_path=PATH, transport_security=security)
    whole = RequestBodyLimitMiddleware(Once(app, service.runs), DEFAULT_MAX_REQUEST_BODY_SIZE)
    return Gate(whole, token, hosts)


def serve_on_port(
    make: Callable[[], Service], where: str, *, state: Path | None, told: Callable[[str, Path], object]
) -> int:
    """Serve until a signal comes, and return its number. `told` gets the address and the file with the token.

    Raises UsageError for a port that can't be had and a token that can't be kept.
    """
    bound = bind(where)
    with bound.listener, token_file(state, bound.port) as (token, path):
        told(bound.url, path)
        return anyio.run(_serve, make, bound, token)


async def _serve(make: Callable[[], Service], bound: Bound, token: str) -> int:
    stopped: list[int] = []
    loop = asyncio.get_running_loop()
    service = make()
    config = uvicorn.Config(
        application(service, token, bound.hosts),
        http=Patient,
        log_config=None,
        log_level="error",  # a stranger's garbage is no news: it would fill the operator's log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=_PARTING,
    )
    server = _Quiet(config)

    def stop(number: int) -> None:
        stopped.append(number)
        loop.call_soon_threadsafe(setattr, server, "should_exit", True)  # noqa: FBT003 - a value of uvicorn's

    async with anyio.create_task_group() as group:
        with on_signal(stop):
            group.start_soon(service.watch)
            await server.serve(sockets=[bound.listener])
            group.cancel_scope.cancel()
    service.close()
    return stopped[0] if stopped else 0


class _Quiet(uvicorn.Server):
    """uvicorn without signal handlers of its own: ours end the runs first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def _address(host: str) -> Any:
    return ipaddress.ip_address(host)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
