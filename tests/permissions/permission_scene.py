"""A scene for permission tests: a workspace, a skill, a home and an operator's file, all below one temporary folder."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillrun.permissions.decide import decide
from skillrun.permissions.layers import load_layers
from skillrun.permissions.place import Place
from skillrun.skills.model import Skill
from skillrun.skills.strict_yaml import read_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.permissions.grant import Grant
    from skillrun.permissions.layers import Layers

DIGEST = "sha256:" + "0" * 64


def text_skill(text: str, folder: Path, *, key: str = "demo", root: Path | None = None) -> Skill:
    """Make a skill of the text of a front matter, without its fences."""
    front = read_yaml(text, path=folder / "SKILL.md")
    return Skill(key, key, "a demo", folder, folder, root, folder / "SKILL.md", front, (), ())


@dataclass
class Scene:
    """Folders of one test, and the calls that every test makes."""

    top: Path
    config: Path | None = None
    machine: Path | None = None
    ceiling: Path | str | None = None
    extra: dict = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        """The folder a run works in."""
        return self.top / "home" / "work"

    @property
    def home(self) -> Path:
        """The caller's home."""
        return self.top / "home"

    @property
    def skill(self) -> Path:
        """The skill's folder."""
        return self.top / "home" / "skills" / "demo"

    @property
    def place(self) -> Place:
        """The place of a run."""
        return Place(self.workspace, self.skill, self.top / "scratch", self.home)

    def write(self, name: str, text: str = "") -> Path:
        """Write a file below the top folder, with its folders."""
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def operator(self, text: str) -> None:
        """Write the operator's own file."""
        self.config = self.write("home/.config/skillrun/skillrun.yaml", text)

    def project(self, text: str, *, folder: str = "home/work") -> Path:
        """Write a project file."""
        return self.write(f"{folder}/skillrun.yaml", text)

    def layers(self) -> Layers:
        """Load every layer."""
        return load_layers(
            ceiling=self.ceiling,
            workspace=self.workspace,
            config_file=self.config,
            machine_file=self.machine,
            home=self.home,
            **self.extra,
        )

    def make(self, text: str, **more: object) -> Skill:
        """Make the skill, found under the operator's roots unless said otherwise."""
        return text_skill(f"name: demo\n{text}\n", self.skill, **{"root": self.home / "skills", **more})

    def grant(self, text: str, *, digest: str = DIGEST, **more: object) -> Grant:
        """Decide about a skill of this front matter."""
        return decide(self.make(text), self.layers(), self.place, digest=digest, **more)

    def tail(self, path: Path | str) -> str:
        """Return a path relative to the workspace, for short expectations."""
        return os.path.relpath(path, self.workspace)

    def reads(self, grant: Grant) -> set[str]:
        """Return the read roots, relative to the workspace."""
        return {self.tail(path) for path in grant.capabilities.fs_read}

    def writes(self, grant: Grant) -> set[str]:
        """Return the write roots, relative to the workspace."""
        return {self.tail(path) for path in grant.capabilities.fs_write}


def build(top: Path) -> Scene:
    """Make the folders of a scene below a folder."""
    made = Scene(top.resolve())
    for folder in ("home/work", "home/skills/demo", "home/.config", "scratch"):
        (made.top / folder).mkdir(parents=True)
    return made
