"""`skillrun mcp --print-config`: what a client's file says starts the server that was meant, from any folder."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mcp_world import Session

from skillrun.cli.mcp_config import CLIENTS, own_command, written
from skillrun.cli.setting import Setting

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_world import World

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = None


def parsed(client: str, text: str) -> dict[str, Any]:
    """Read a configuration by the client's own rules."""
    if client != "codex":
        return json.loads(text)["servers" if client == "vscode" else "mcpServers"]["skillrun"]
    if tomllib is None:
        pytest.skip("tomllib came with Python 3.11")
    return tomllib.loads(text)["mcp_servers"]["skillrun"]


@pytest.mark.parametrize("client", list(CLIENTS))
def test_every_client_is_told_the_same_command(tmp_path: Path, client: str) -> None:
    """Roots, workspace and ceiling are absolute, odd names survive, and the program is not looked for where one stands."""
    odd = tmp_path / 'a "b\\c\u00fc\x7f'
    setting = Setting(
        skills=(str(odd),), workspace=str(tmp_path), ceiling=str(tmp_path / "c.yaml"), require="full"
    )
    found = parsed(client, written(client, setting))
    words = ["mcp", "--skills", str(odd), "--workspace", str(tmp_path.resolve()),
             "--ceiling", str(tmp_path / "c.yaml"), "--require", "full"]  # fmt: skip
    assert [found["command"], *found["args"]] == [*own_command(), *words]
    assert "-m" not in own_command() or "-I" in own_command()


def test_the_printed_command_serves(world: World) -> None:
    """It lists the tools from a folder that has a package `skillrun` of its own."""
    world.skill("demo", ok="print('fine')")
    words = ["mcp", "--skills", "skills", "--workspace", ".", "--print-config", "claude"]
    done = subprocess.run(
        [sys.executable, "-m", "skillrun", *words],
        cwd=world.workspace, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    found = parsed("claude", done.stdout)
    trap = world.home / "elsewhere"
    (trap / "skillrun").mkdir(parents=True)
    (trap / "skillrun" / "__init__.py").write_text("raise SystemExit('trapped')")
    session = Session(
        [found["command"], *found["args"]], {"PATH": "/usr/bin:/bin", "HOME": str(world.home)}, trap
    )
    world.sessions.append(session)
    session.hello()
    session.send(id=1, method="tools/list")
    assert [tool["name"] for tool in session.answer(1)["result"]["tools"]] == ["demo__ok"]
    assert session.close() == 0
