"""Fixtures of the MCP tests. Without the SDK they are skipped, and `make test` installs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("mcp", reason="the MCP SDK is not installed")

from mcp_world import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Give an empty workspace, and end what served it."""
    made = World(tmp_path.resolve() / "work", tmp_path.resolve() / "home")
    made.workspace.mkdir()
    made.home.mkdir()
    yield made
    for session in made.sessions:
        session.end()
    for runner in made.runners:
        runner.close()
