"""Streamable HTTP: the real command on a port, the SDK's own client, and strangers at the gate."""

from __future__ import annotations

import contextlib
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx2 as httpx
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_world import WAIT, alive, until
from test_service import ERAS, in_loop
from test_stdio import LIVES, OPEN, WRITES

from skillrun.errors import UsageError
from skillrun.mcp.http import bind
from skillrun.mcp.token import token_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_world import Session, World


@dataclass
class Port:
    """A served port."""

    session: Session
    url: str
    token: str
    file: Path

    @property
    def number(self) -> int:
        """Its number."""
        return int(re.search(r":(\d+)/", self.url)[1])


def serve(world: World, *words: str) -> Port:
    """Start the command on a free port."""
    session = world.start("--http", "0", *words)
    end = time.monotonic() + WAIT
    while not (found := re.search(rb"serving (\S+), the token is in (\S+)\n", bytes(session.errors))):
        assert time.monotonic() < end, session.errors
        assert session.process.poll() is None, session.errors
        time.sleep(0.05)
    file = Path(found[2].decode())
    return Port(session, found[1].decode(), file.read_text().strip(), file)


@in_loop
async def test_the_port(world: World) -> None:
    """Both eras are served; a closed stream kills the tree; every stranger is sent away; TERM ends all of it."""
    world.skill("demo", ok="print('fine')")
    world.skill("long", front=WRITES, run=LIVES)
    (world.workspace / "out").mkdir()
    port = serve(world, "--ceiling", str(world.ceiling(OPEN)))
    assert stat.S_IMODE(port.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(port.file.parent.stat().st_mode) == 0o700
    auth = {"Authorization": f"Bearer {port.token}"}
    beat = world.workspace / "out" / "beat"
    for era in ERAS:
        async with connected(port, auth, era) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["demo__ok", "long__run"]
            assert (await client.call_tool("demo__ok")).content[0].text == "fine"
            beat.unlink(missing_ok=True)
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "long__run")
                await anyio.to_thread.run_sync(until, beat)
                group.cancel_scope.cancel()
            assert not await anyio.to_thread.run_sync(alive, beat)
    await strangers(port, auth)
    beat.unlink()
    async with connected(port, auth) as client, anyio.create_task_group() as group:
        group.start_soon(lost, client)
        await anyio.to_thread.run_sync(until, beat)
        port.session.process.terminate()
        code = await anyio.to_thread.run_sync(port.session.process.wait, 30)
        group.cancel_scope.cancel()
    assert code == 143
    assert not alive(beat)
    assert not port.file.exists()


@contextlib.asynccontextmanager
async def connected(port: Port, headers: dict[str, str], era: str = "auto") -> AsyncIterator[Client]:
    """Give the SDK's client, connected to the port."""
    async with httpx.AsyncClient(headers=headers, timeout=WAIT) as http:
        transport = streamable_http_client(port.url, http_client=http)
        async with Client(transport, mode=era) as client:
            yield client


async def lost(client: Client) -> None:
    """Call a tool whose server goes away."""
    try:
        await client.call_tool("long__run")
    except Exception:  # noqa: BLE001 - however the client says that the connection is gone
        return


async def strangers(port: Port, auth: dict[str, str]) -> None:
    """Send requests that must not come through, each wrong in one thing; the control differs from them in nothing else."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}  # fmt: skip
    right = {**auth, "Accept": "application/json, text/event-stream"}
    wrong: list[tuple[dict[str, Any], int]] = [
        ({}, 200),
        ({"Origin": f"http://localhost:{port.number}"}, 200),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": ""}, 401),
        ({"Authorization": f"Basic {port.token}"}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"http://localhost:{port.number}.evil.example"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Host": f"127.0.0.1:{port.number + 1}"}, 421),
        ({"Host": f"127.0.0.1:{port.number}.evil.example"}, 421),
        ({"Host": "127.0.0.1"}, 421),
    ]
    async with httpx.AsyncClient(timeout=WAIT) as http:
        for change, status in wrong:
            answer = await http.post(port.url, json=body, headers={**right, **change})
            assert answer.status_code == status, change
        for path in ("/", "/mcp/", "/other"):
            answer = await http.get(port.url.replace("/mcp", path))
            assert answer.status_code == 401


@pytest.mark.parametrize("where", ["x", "", "70000", "0.0.0.0:0", "[::]:0", "example.com:1", "-1", "²"])
def test_what_is_no_port_is_told(where: str) -> None:
    """A wrong port, and an address that means every address, are errors before anything is served."""
    with pytest.raises(UsageError):
        bind(where)


def test_the_token_is_new_each_time_and_never_written_through_a_link(tmp_path: Path) -> None:
    """A link in the token's place is replaced; the file goes at the end, unless a later server made its own."""
    other = tmp_path / "other"
    other.write_text("kept")
    folder = tmp_path / "mcp"
    folder.mkdir(mode=0o777)
    (folder / "1.token").symlink_to(other)
    with token_file(tmp_path, 1) as (token, path):
        assert other.read_text() == "kept"
        assert path.read_text().strip() == token
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with token_file(tmp_path, 1) as (second, _):
            assert second != token
        assert not path.exists()
    with pytest.raises(UsageError), token_file(None, 1):
        pass
