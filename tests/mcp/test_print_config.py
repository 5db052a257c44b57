"""`skillrun mcp --print-config`: what a client's file says starts the server that was meant, from any folder."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from skillrun.cli.mcp_config import CLIENTS

if TYPE_CHECKING:
    from mcp_world import World

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = None


@pytest.mark.parametrize("client", list(CLIENTS))
def test_the_printed_command_serves(world: World, client: str) -> None:
    """The command is read by the client's own rules and lists the tools from a folder that has a `skillrun` of its own."""
    world.skill("demo", ok="print('fine')")
    ceiling = world.ceiling("sandbox: {}\n")
    words = [
        "mcp",
        "--skills",
        "skills",
        "--workspace",
        ".",
        "--ceiling",
        str(ceiling),
        "--print-config",
        client,
    ]
    done = subprocess.run(
        [sys.executable, "-m", "skillrun", *words],
        cwd=world.workspace, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if client == "codex":
        if tomllib is None:
            pytest.skip("tomllib came with Python 3.11")
        found = tomllib.loads(done.stdout)["mcp_servers"]["skillrun"]
    else:
        found = json.loads(done.stdout)["servers" if client == "vscode" else "mcpServers"]["skillrun"]
    if client != "claude":
        assert found["args"][:2] == ["mcp", "--skills"] or "-I" in found["args"]
        return
    trap = world.home / "elsewhere"
    (trap / "skillrun").mkdir(parents=True)
    (trap / "skillrun" / "__init__.py").write_text("raise SystemExit('trapped')")
    from mcp_world import Session

    session = Session(
        [found["command"], *found["args"]], {"PATH": "/usr/bin:/bin", "HOME": str(world.home)}, trap
    )
    world.sessions.append(session)
    session.hello()
    session.send(id=1, method="tools/list")
    assert [tool["name"] for tool in session.answer(1)["result"]["tools"]] == ["demo__ok"]
    assert session.close() == 0
