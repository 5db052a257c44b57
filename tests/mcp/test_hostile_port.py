"""A hostile client, and strangers without a token, on a port."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from typing import TYPE_CHECKING, Any

import anyio
import httpx2 as httpx
import psutil
import pytest
from mcp_world import WAIT, until
from test_hostile_client import MODERN, WAITS
from test_http import connected, serve
from test_service import in_loop
from test_stdio import OPEN, WRITES

from skillrun.mcp import patience
from skillrun.mcp.patience import Patient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_world import World
    from test_http import Port

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


class Client:
    """The least that speaks streamable HTTP in the era of the handshake."""

    def __init__(self, http: httpx.AsyncClient, port: Port) -> None:
        self.http = http
        self.url = port.url
        self.headers = {**ACCEPT, "Authorization": f"Bearer {port.token}"}

    async def hello(self) -> None:
        """Shake hands."""
        answer = await self.post({"id": 0, "method": "initialize", "params": HELLO})
        assert answer.status_code == 200
        self.headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
        await self.post({"method": "notifications/initialized"})

    async def post(self, message: dict[str, Any]) -> httpx.Response:
        """Send a message."""
        return await self.http.post(self.url, json={"jsonrpc": "2.0", **message}, headers=self.headers)

    async def call(self, number: Any, name: str, *words: str) -> dict[str, Any]:
        """Call a tool and return the message that answers it."""
        params = {"name": name, "arguments": {"args": list(words)}}
        return said(await self.post({"id": number, "method": "tools/call", "params": params}))


def said(answer: httpx.Response) -> dict[str, Any]:
    """Return the last message of an answer."""
    lines = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    return json.loads(lines[-1].removeprefix("data: ") if lines else answer.text)


@contextlib.asynccontextmanager
async def clients(world: World, count: int = 1) -> AsyncIterator[tuple[Port, list[Client]]]:
    """Give a served port and clients that have shaken hands, each with a session."""
    port = await anyio.to_thread.run_sync(serve, world, "--ceiling", str(world.ceiling(OPEN)))
    async with httpx.AsyncClient(timeout=WAIT) as http:
        made = [Client(http, port) for _ in range(count)]
        for one in made:
            await one.hello()
        yield port, made


@in_loop
async def test_an_id_that_is_under_way_in_a_session_is_refused(world: World) -> None:
    """The second request with an id is refused on its own stream, also after the first one's was closed; another session has ids of its own."""
    world.skill("demo", front=WRITES, wait=WAITS, ok="print('fine')")
    (world.workspace / "out").mkdir()
    ran = world.workspace / "out" / "ran"
    async with clients(world, 2) as (_, (mine, other)):
        done: list[dict[str, Any]] = []

        async def first() -> None:
            done.append(await mine.call(1, "demo__wait", "first"))

        async def abandoned() -> None:
            with anyio.move_on_after(1):
                await mine.call(2, "demo__wait", "abandoned")

        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await anyio.to_thread.run_sync(until, ran)
            for same in (1, "1"):
                refused = await mine.call(same, "demo__wait", "second")
                assert (refused["id"], refused["error"]["code"]) == (same, -32600)
            await abandoned()
            await anyio.sleep(1)  # the server has seen that the stream is closed
            assert "error" in await mine.call(2, "demo__wait", "again")
            assert (await other.call(1, "demo__ok"))["result"]["content"][0]["text"] == "fine"
            (world.workspace / "out" / "go").touch()
        assert done[0]["result"]["content"][0]["text"] == "said first"
        assert ran.read_text() == "xx"
        # The id is free once its stream is closed, which is a moment after the answer was read.
        for _ in range(200):
            answer = await mine.call(1, "demo__ok")
            if "result" in answer:
                break
            await anyio.sleep(0.05)
        assert answer["result"]["content"][0]["text"] == "fine"
        twice = {"id": 5, "method": "tools/call", "params": {"name": "demo__ok", "_meta": MODERN}}
        modern = {
            **mine.headers,
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "demo__ok",
        }
        del modern["Mcp-Session-Id"]

        async def exchange() -> None:
            answer = await mine.http.post(mine.url, json={"jsonrpc": "2.0", **twice}, headers=modern)
            assert said(answer)["result"]["content"][0]["text"] == "fine"

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(exchange)


@in_loop
async def test_requests_that_are_wrong_in_their_form(world: World) -> None:
    """Too large, without end, of another's session, with the token elsewhere, doubled or smuggled headers: refused, and the port goes on."""
    world.skill("demo", ok="print('fine')")
    async with clients(world) as (port, (mine,)):
        ping = b'{"jsonrpc":"2.0","id":9,"method":"ping"}'

        async def post(body: Any, *, at: str = "", **headers: str) -> int:
            given = {
                **mine.headers,
                "Content-Type": "application/json",
                **{k.replace("_", "-"): v for k, v in headers.items()},
            }
            return (await mine.http.post(port.url + at, content=body, headers=given)).status_code

        async def endless() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield b"a" * (1 << 20)

        assert await post(ping) == 200
        assert await post(b" " * (5 << 20)) == 413
        with contextlib.suppress(httpx.HTTPError):  # it may close the connection before the body is sent
            assert await post(endless()) == 413
        assert await post(ping, Mcp_Session_Id="0" * 32) == 404
        assert await post(ping, at=f"?access_token={port.token}&token={port.token}", Authorization="") == 401
        assert await post(b"[" + ping + b"]") == 400
        assert await post(b"\xff") == 400
        assert await post(b"[" * 100_000) == 400
        assert await post(ping, Content_Type="text/plain") == 400
        for raw, status in (
            (b"Host: evil.example\r\n", b"400"),
            (b"Authorization: Bearer wrong\r\n", b"401"),
            (b"Origin: null\r\n", b"403"),
            (b"Content-Length: 5\r\n", b"400"),
            (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", b"400"),
            (b"Transfer-Encoding : chunked\r\n", b"400"),
            (b"X: a\nAuthorization: Bearer x\r\n", b"401"),
        ):
            assert raw_answer(port, ping, raw).split(b" ")[1] == status, raw
        assert raw_answer(port, ping, b"").split(b" ")[1] != b"401"
        assert (await mine.call(1, "demo__ok"))["result"]["content"][0]["text"] == "fine"
        assert b"Traceback" not in port.session.errors


def raw_answer(port: Port, body: bytes, more: bytes) -> bytes:
    """Send a request as bytes, with more headers, and return the start of the answer."""
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port.number}\r\nAuthorization: Bearer {port.token}\r\n"
        f"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    with socket.create_connection(("127.0.0.1", port.number), timeout=WAIT) as connection:
        connection.sendall(head.encode() + more + b"\r\n" + body)
        return connection.recv(4096)


def settled(server: psutil.Process) -> None:
    """Wait until a server has no more descriptors than it may: what was accepted at once is closed a moment later."""
    end = time.monotonic() + 20
    while (count := server.num_fds()) >= patience.CONNECTIONS + 100:
        assert time.monotonic() < end, count
        time.sleep(0.1)


@in_loop
async def test_strangers_who_only_connect_keep_nobody_out(world: World) -> None:
    """Hundreds of connections that send nothing use up neither descriptors nor places: clients are served, scripts start."""
    world.skill("demo", ok="print('fine')")
    port = await anyio.to_thread.run_sync(serve, world)
    with contextlib.ExitStack() as opened:
        for _ in range(600):
            stranger = opened.enter_context(socket.socket())
            stranger.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                stranger.connect(("127.0.0.1", port.number))
            await anyio.sleep(0.001)
        await anyio.to_thread.run_sync(settled, psutil.Process(port.session.process.pid))
        async with connected(port, {"Authorization": f"Bearer {port.token}"}) as client:
            assert (await client.call_tool("demo__ok")).content[0].text == "fine"


@pytest.mark.parametrize(
    "sent",
    [
        b"", b"POST /mcp HTTP/1.1\r\nHo", b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\na",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT",
    ],
    ids=["nothing", "half a head", "half a body", "half a second one"],
)  # fmt: skip
@in_loop
async def test_who_keeps_us_waiting_is_sent_away(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """One byte now and then does not hold a connection; an answer that takes long does."""
    import uvicorn

    monkeypatch.setattr(patience, "SECONDS", 1.0)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/long":
            await anyio.sleep(3)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    config = uvicorn.Config(app, http=Patient, log_config=None, lifespan="off", port=0)
    server = uvicorn.Server(config)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listener])
        stranger = await anyio.connect_tcp(*listener.getsockname())
        honest = await anyio.connect_tcp(*listener.getsockname())
        async with stranger, honest:
            await honest.send(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
            began = time.monotonic()
            with contextlib.suppress(anyio.BrokenResourceError):
                await stranger.send(sent)
            with anyio.fail_after(10):
                await gone(stranger)
            assert time.monotonic() - began < 4
            assert (await honest.receive()).startswith(b"HTTP/1.1 200")
        server.should_exit = True
    listener.close()


async def gone(stranger: Any) -> None:
    """Send a byte now and then, until the other end closes the connection."""
    async with anyio.create_task_group() as dripping:
        dripping.start_soon(drip, stranger)
        with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                await stranger.receive()
        dripping.cancel_scope.cancel()


async def drip(stranger: Any) -> None:
    """Send a byte now and then."""
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            await anyio.sleep(0.2)
            await stranger.send(b"a")


def test_the_token_is_of_this_user_alone_at_any_moment(world: World) -> None:
    """With the most careless umask, neither the file nor its folder can be read by others while they are written."""
    from skillrun.mcp.token import token_file

    before = os.umask(0)
    try:
        with token_file(world.home / "state", 1) as (_, path):
            assert path.stat().st_mode & 0o077 == 0
            assert path.parent.stat().st_mode & 0o077 == 0
            assert [one.name for one in path.parent.iterdir()] == ["1.token"]
    finally:
        os.umask(before)
