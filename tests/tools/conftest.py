"""Fixtures of the tool tests: a workspace with skills, and a runner over them."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillrun.host import Host
from skillrun.runner import Runner
from skillrun.tools.box import Toolbox
from skillrun.tools.script_tool import ScriptTool, script_tools

sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@dataclass
class World:
    """A workspace whose skills are written by a test, and what is made of them."""

    workspace: Path
    home: Path
    runners: list[Runner] = field(default_factory=list)

    def skill(
        self, name: str, *, front: str = "", scripts: dict[str, str] | None = None, root: str = "skills"
    ) -> Path:
        """Write a skill. `front` is more front matter."""
        folder = self.workspace / root / name
        (folder / "scripts").mkdir(parents=True)
        front = textwrap.dedent(front)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: The skill {name}.\n{front}---\n")
        for script, text in (scripts or {}).items():
            path = folder / "scripts" / script
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return folder

    def file(self, name: str, text: str = "") -> Path:
        """Write a file of the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def runner(self, ceiling: str | None = None, **settings: Any) -> Runner:
        """Make a runner; `ceiling` is the text of a ceiling file, None the default preset."""
        where: Path | str = "default"
        if ceiling is not None:
            where = self.home / "ceiling.yaml"
            where.write_text(textwrap.dedent(ceiling))
        host = Host(home=self.home, environ={"PATH": "/usr/bin:/bin"}, state=self.home / "state")
        made = Runner(workspace=self.workspace, ceiling=where, host=host, **settings)
        self.runners.append(made)
        return made

    def tools(self, ceiling: str | None = None) -> dict[str, ScriptTool]:
        """Return the tools of all skills, by name."""
        return {tool.name: tool for tool in script_tools(self.runner(ceiling))[0]}

    def box(self, *tools: Any, ceiling: str | None = None, **settings: Any) -> Toolbox:
        """Return a toolbox with all skills."""
        return Toolbox(tools, runner=self.runner(ceiling), **settings)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Give an empty workspace and end its runners."""
    made = World(tmp_path.resolve() / "work", tmp_path.resolve() / "home")
    made.workspace.mkdir()
    made.home.mkdir()
    yield made
    for runner in made.runners:
        runner.close()
