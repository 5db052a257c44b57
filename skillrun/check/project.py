"""Project: what is checked and what limits it, told apart from the machine that checks it.

A check must say the same on every machine, so it decides about a place that has no machine in it: the
workspace, the home and the scratch folder are names (`/${workspace}`), and what lies outside the project
is compared as it is written. Inside the project links are followed as everywhere. The functions that
decide are those of every other command.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skillrun.permissions.place import Place
from skillrun.permissions.resolve import Resolver
from skillrun.permissions.spelled import Spelled
from skillrun.problem import At

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillrun.host import Host
    from skillrun.permissions.layers import Layers
    from skillrun.skills.model import Skill

WORKSPACE: Final = Path("/${workspace}")
SKILL: Final = Path("/${skill}")
SCRATCH: Final = Path("/${scratch}")
HOME: Final = Path("/${home}")


class ProjectDisk:
    """The disk as a check sees it: the trees that are checked, below their names, and nothing else."""

    def __init__(self, trees: dict[Path, Path]) -> None:
        self.trees = tuple((str(name), str(real)) for name, real in trees.items())

    def lstat(self, path: str) -> os.stat_result:
        """As `os.lstat`; what is outside is not there."""
        return os.lstat(self._real(path))

    def readlink(self, path: str) -> str:
        """As `os.readlink`; a target inside a tree is given by the tree's name."""
        target = os.readlink(self._real(path))  # noqa: PTH115 - the protocol speaks in strings
        for name, real in self.trees:
            if target == real or target.startswith(f"{real}/"):
                return name + target[len(real) :]
        return target

    def listdir(self, path: str) -> list[str]:
        """As `os.listdir`."""
        return os.listdir(self._real(path))  # noqa: PTH208 - the protocol speaks in strings

    def _real(self, path: str) -> str:
        for name, real in self.trees:
            if path == name or path.startswith(f"{name}/"):
                return real + path[len(name) :]
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


@dataclass(frozen=True, slots=True)
class Project:
    """A folder whose skills are checked, and the ceiling that holds for them.

    `folder` is physical. `layers` are in the names of this place (`placed`). One resolver serves all
    skills of the project, so that all of them are judged against one picture of the disk; `interpreters`
    remembers for each what keeps it from being used here.
    """

    folder: Path
    layers: Layers
    host: Host
    resolver: Resolver = field(default_factory=Resolver)
    interpreters: dict[str, str | None] = field(default_factory=dict, compare=False)

    def place(self, skill: Skill) -> Place:
        """Describe where a skill would run."""
        return Place(workspace=WORKSPACE, skill=self.named(skill.path) or SKILL, scratch=SCRATCH, home=HOME)

    def resolver_for(self, skill: Skill) -> Resolver:
        """Give the resolver that knows a skill's folder; one of its own for a skill outside the project."""
        if self.named(skill.path) is not None:
            return self.resolver
        return Resolver(ProjectDisk({WORKSPACE: self.folder, SKILL: skill.path}))

    def named(self, path: Path) -> Path | None:
        """Return the name of a path inside the project, None outside."""
        text, top = str(path), str(self.folder)
        if text == top:
            return WORKSPACE
        return Path(f"{WORKSPACE}{text[len(top) :]}") if text.startswith(f"{top}/") else None

    def label(self, path: Path) -> str:
        """Return a path relative to the project, `.` for the project itself, absolute outside."""
        text, top = str(path), str(self.folder)
        if text == top:
            return "."
        return text[len(top) + 1 :] if text.startswith(f"{top}/") else text


def placed(layers: Layers, folder: Path, host: Host) -> Project:
    """Make the project of a folder: the layers' own folders are given by name where they lie in it."""
    resolver = Resolver(ProjectDisk({WORKSPACE: folder}))
    project = Project(folder, layers, host, resolver)

    def spelled(one: Spelled) -> Spelled:
        if not isinstance(one.base, Path):
            return one
        named = project.named(one.base)
        return one if named is None else Spelled(one.text, one.at, named)

    return replace(project, layers=changed(layers, {Spelled: spelled}))


def written(path: Path | str) -> str:
    """Return a path of a check's place as a person writes it: `${workspace}/out`, `~/x`, `/etc`."""
    text = str(path)
    if text == str(HOME) or text.startswith(f"{HOME}/"):
        return f"~{text[len(str(HOME)) :]}"
    return text[1:] if text.startswith("/${") else text


def changed(value: Any, makers: dict[type, Callable[[Any], Any]]) -> Any:
    """Return a value of frozen dataclasses with every part of the given types made anew."""
    maker = makers.get(type(value))
    if maker is not None:
        return maker(value)
    if isinstance(value, tuple):
        return tuple(changed(inner, makers) for inner in value)
    if is_dataclass(value) and not isinstance(value, type | At):
        parts = {f.name: changed(getattr(value, f.name), makers) for f in fields(value)}
        return replace(value, **parts)
    return value
