"""Tools of other servers: confined, pinned, and never trusted for what they say of themselves."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from test_approval import Person
from test_mcp_run import CEILING, SERVER
from test_service import in_loop

from skillrun.errors import ConfigError
from skillrun.mcp.remote import digest_of
from skillrun.mcp.servers import read_servers

if TYPE_CHECKING:
    from mcp_world import World


def servers(world: World, **more: Any) -> str:
    """Write the file of servers, with the small server in it."""
    (world.workspace / "server.py").write_text(textwrap.dedent(SERVER))
    (world.workspace / "out").mkdir()
    world.ceiling(CEILING)
    theirs = {
        "command": sys.executable, "args": ["server.py"], "ceiling": "./ceiling.yaml", "workspace": str(world.workspace), **more,
    }  # fmt: skip
    broken = {"command": "/bin/false", "ceiling": "default"}
    path = world.home / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"theirs": theirs, "broken": broken}}))
    return str(path)


PIN = digest_of(
    types.Tool(
        name="read",
        description="Reads.",
        input_schema={"type": "object", "properties": {"path": {"type": "string"}}},
    )
)


@in_loop
async def test_tools_of_another_server(world: World) -> None:
    """They run confined; without the right pin a person is asked, though the server calls both of them harmless."""
    secret = world.home / "secret"
    secret.write_text("secret")
    (world.workspace / "mine").write_text("mine")
    pins = {"read": PIN, "peek": PIN}  # `peek` is pinned as something that it is not
    words = ["-m", "skillrun", "mcp", "--workspace", ".", "--servers", servers(world, tools=pins)]
    parameters = StdioServerParameters(
        command=sys.executable, args=words, cwd=world.workspace, env={"HOME": str(world.home)}
    )
    person = Person()
    async with Client(parameters, elicitation_callback=person) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["theirs__peek", "theirs__read"]
        assert tools["theirs__read"].annotations is None
        for name, asked in (("theirs__read", 0), ("theirs__peek", 2)):
            mine = await client.call_tool(name, {"path": str(world.workspace / "mine")})
            assert mine.content[0].text.startswith("mine")
            theirs = await client.call_tool(name, {"path": str(secret)})
            assert theirs.content[0].text.startswith("FileNotFoundError")
            assert len(person.asked) == asked


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{", '{"mcpServers": []}', '{"mcpServers": {"a b": {"command": "x", "ceiling": "default"}}}',
        '{"mcpServers": {"a": {"command": "x"}}}', '{"mcpServers": {"a": {"ceiling": "default"}}}',
        '{"mcpServers": {"a": {"command": "x", "ceiling": "default", "args": [1]}}}',
        '{"mcpServers": {"a": {"command": "x", "ceiling": "default", "trust": true}}}',
        '{"mcpServers": {"a": {"url": "http://x", "ceiling": "default"}}}', "[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_file_of_servers_is_told(world: World, text: str) -> None:
    """No server is started from a file that is wrong, and none without a ceiling of its own."""
    path = world.home / "servers.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        read_servers(path)


def test_a_schema_that_leads_elsewhere_is_not_followed() -> None:
    """A reference to another document would be fetched by a validator: such a tool is left out."""
    from skillrun.mcp.remote import _portable

    for schema in (
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}},
        {"allOf": [{"$dynamicRef": "file:///etc/passwd"}]},
    ):
        with pytest.raises(ValueError, match="another document"):
            _portable(schema)
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"items": deep}
    with pytest.raises(ValueError, match="deep"):
        _portable(deep)
    assert _portable({"$id": "http://x/", "$ref": "#/a"}) == {"$ref": "#/a"}
