"""Serving over MCP: the start up to the list of tools, and calls."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.measure import Row, in_turn
from skillrun.host import current_host
from skillrun.runner import Runner

MINIMAL = """
import anyio, mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
async def listed(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name="a", input_schema={"type": "object"})])
async def main():
    server = Server("minimal", on_list_tools=listed)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
anyio.run(main)
"""
HELLO = {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"},
}  # fmt: skip


class Client:
    """The least that speaks to a server on its standard streams."""

    def __init__(self, words: list[str], cwd: str) -> None:
        self._process = subprocess.Popen(
            words, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.ask("initialize", HELLO)
        self._send({"method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        assert self._process.stdout is not None
        self._send({"id": 1, "method": method, "params": params})
        while True:
            answer = json.loads(self._process.stdout.readline())
            if answer.get("id") == 1:
                return answer["result"]

    def close(self) -> None:
        """Close the connection and wait for the server's end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def rows(rounds: int) -> list[Row]:
    """Compare with a minimal server on the same SDK, and with a bare loop of confined runs."""
    if importlib.util.find_spec("mcp") is None:
        print("the MCP SDK is not installed: `pip install 'skillrun-sandbox[mcp]'`", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as top:
        folder = str(Path(top).resolve())
        script = Path(folder, "skills/hello/scripts/hello.sh")
        script.parent.mkdir(parents=True)
        script.write_text("#!/bin/sh\necho hello\n")
        script.parent.with_name("SKILL.md").write_text("---\nname: hello\ndescription: d\n---\n")
        minimal = [sys.executable, "-c", MINIMAL]
        ours = [sys.executable, "-m", "skillrun", "mcp", "--ceiling", "default", "--workspace", folder]

        def start(words: list[str]) -> None:
            client = Client(words, folder)
            assert client.ask("tools/list", {})["tools"]
            client.close()

        starts = in_turn(
            {"minimal": lambda: start(minimal), "ours": lambda: start(ours)}, max(10, rounds // 20)
        )
        client = Client(ours, folder)
        call = {"name": "hello__hello", "arguments": {}}
        with Runner(workspace=Path(folder), ceiling="default", host=current_host()) as runner:
            calls = in_turn(
                {"bare": lambda: runner.run("hello"), "mcp": lambda: client.ask("tools/call", call)}, rounds
            )
        client.close()
    return [
        Row(
            "skillrun mcp up to its list of tools",
            "a minimal server",
            starts["ours"] / starts["minimal"],
            1.3,
        ),
        Row("one call over MCP", "one confined run in a loop", calls["mcp"] / calls["bare"], 2),
    ]
