"""Subject: one skill as the rules see it: what it asks for, what it would get, what its scripts do."""

from __future__ import annotations

import functools
import itertools
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.check.static.read import read
from skillrun.check.static.use import Kind
from skillrun.errors import ConfigError, SkillError
from skillrun.permissions.capabilities import inside
from skillrun.permissions.decide import decide
from skillrun.permissions.grant import Capability, Cwd
from skillrun.permissions.request import read_request
from skillrun.permissions.spelled import Spelled, expand
from skillrun.permissions.voices import listen
from skillrun.problem import At
from skillrun.skills.digest import digest
from skillrun.skills.disk import read_start
from skillrun.skills.skill import MANIFEST
from skillrun.skills.strict_yaml import SIZE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skillrun.check.project import Project
    from skillrun.check.static.use import Reading, Use
    from skillrun.permissions.grant import Grant
    from skillrun.permissions.place import Place
    from skillrun.permissions.request import Request
    from skillrun.permissions.resolve import Resolver
    from skillrun.problem import Problem
    from skillrun.skills.model import Script, Skill


_MOST_ENTRIES = 20_000  # files and folders of one skill that are looked at
_SKIPPED = frozenset({".git", "__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a skill's folder that is no plain file: a link with its target, or unusual modes."""

    path: str
    mode: int
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """A use and the script it is in."""

    script: Script
    use: Use
    reading: Reading

    @property
    def at(self) -> At:
        """The place, with its line."""
        return At(self.script.path, self.use.line, self.use.column, excerpt=self.reading.line(self.use.line))


class Subject:
    """One skill. Everything is looked up when a rule first asks, and once."""

    def __init__(self, skill: Skill, project: Project, *, by_name: bool = True) -> None:
        self.skill = skill
        self.project = project
        self.by_name = by_name
        self.label = project.label(skill.found)

    @functools.cached_property
    def digest(self) -> str:
        """The skill's digest. Raises SkillError for what can't be read."""
        return digest(self.skill.path)

    @functools.cached_property
    def own(self) -> Request:
        """What the skill's own SKILL.md asks for."""
        return read_request(self.skill)

    @functools.cached_property
    def _decided(self) -> tuple[Request, Grant | None, tuple[Problem, ...]]:
        skill, project = self.skill, self.project
        # The digest is read only where somebody has said something that depends on it: it is most of the reading.
        spoken = any(entry.key == skill.key for entry in project.layers.entries)
        try:
            trusts = bool(self.own.of(Capability.TRUST))
            version = self.digest if spoken or trusts else ""
            voice = listen(skill, project.layers, version)
            grant = decide(
                skill,
                project.layers,
                self.place,
                digest=version,
                voice=voice,
                resolver=self.resolver,
            )
        except (SkillError, ConfigError) as wrong:
            return self.own, None, wrong.problems
        return voice.request, grant, ()

    @property
    def request(self) -> Request:
        """The request that counts: the operator's for this skill where there is one, else the skill's own."""
        return self._decided[0]

    @property
    def grant(self) -> Grant | None:
        """What a run would get; None when the skill does not run at all."""
        return self._decided[1]

    @functools.cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that reading the skill and deciding about it said."""
        about_scripts = (problem for script in self.skill.scripts for problem in script.problems)
        grant = self.grant
        warnings = () if grant is None else grant.warnings
        return tuple(
            dict.fromkeys(
                (*self.skill.problems, *self.own.problems, *about_scripts, *self._decided[2], *warnings)
            )
        )

    @functools.cached_property
    def readings(self) -> tuple[tuple[Script, Reading], ...]:
        """The static reading of each script that is no test of the skill's own."""
        return tuple((script, read(script)) for script in self.skill.scripts)

    def uses(self, *kinds: Kind) -> Iterator[Used]:
        """Give what the scripts use, of some kinds, with the places. Tests are left out: nobody runs them as the skill."""
        for script, reading in self.readings:
            if script.tool or not _is_test(script.name):
                for use in reading.of(*kinds):
                    yield Used(script, use, reading)

    @functools.cached_property
    def odd_entries(self) -> tuple[Entry, ...]:
        """Links, and what others can write or is set-id, by path. A skill inside this one has its own."""
        return tuple(_odd_entries(str(self.skill.path)))

    @functools.cached_property
    def manifest_text(self) -> str:
        """The text of SKILL.md; empty when it can't be read."""
        try:
            return read_start(self.skill.manifest.resolve(), SIZE_LIMIT)[0].decode("utf-8", "replace")
        except OSError:
            return ""

    @functools.cached_property
    def asked_paths(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """The paths that are asked for to read (those to write included) and to write, in the check's place."""
        write = tuple(
            self._resolve(Spelled(str(a.value), a.at, a.base)) for a in self.request.of(Capability.FS_WRITE)
        )
        read_ = tuple(
            self._resolve(Spelled(str(a.value), a.at, a.base)) for a in self.request.of(Capability.FS_READ)
        )
        return (*read_, *write), write

    def resolved(self, path: str) -> Path:
        """Resolve a path that a script uses: relative ones from the folder it runs in."""
        path = "~/" if path == "~" else path
        return self._resolve(Spelled(path, At(self.skill.manifest)))

    def covers(self, kind: Kind, path: Path) -> bool:
        """Whether what is asked for includes a path."""
        read_, write = self.asked_paths
        return any(inside(path, root) for root in (write if kind is Kind.WRITE else read_))

    @property
    def declares(self) -> bool:
        """Whether anybody has said what this skill needs, be it nothing."""
        return bool(self.request.present)

    def place_of(self, key: str) -> At:
        """Return the place of a front matter key, else that of the file."""
        front = self.skill.front
        entry = front.get(key) if front is not None else None
        return entry.at if entry is not None else At(self.skill.manifest)

    @property
    def at(self) -> At:
        """The place of the skill as a whole: its name."""
        return self.place_of("name")

    @functools.cached_property
    def place(self) -> Place:
        """Where the skill would run, in the names of a check."""
        return self.project.place(self.skill)

    @functools.cached_property
    def resolver(self) -> Resolver:
        """The picture of the disk that knows the skill's folder."""
        return self.project.resolver_for(self.skill)

    @functools.cached_property
    def _cwd(self) -> Path:
        return self.place.skill if self.request.cwd is Cwd.SKILL else self.place.workspace

    def _resolve(self, spelled: Spelled) -> Path:
        return self.resolver.follow(expand(spelled, self.place, self._cwd)).path


def _odd_entries(top: str) -> Iterator[Entry]:
    status = os.lstat(top)
    if status.st_mode & stat.S_IWOTH:
        yield Entry(".", status.st_mode)
    stack, left = [""], _MOST_ENTRIES
    while stack and left > 0:
        prefix = stack.pop()
        try:
            with os.scandir(f"{top}/{prefix}") as listing:
                entries = sorted(itertools.islice(listing, left), key=lambda entry: entry.name)
        except OSError:
            continue
        left -= len(entries)
        if prefix and any(entry.name == MANIFEST for entry in entries):
            continue
        for entry in entries:
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except OSError:
                continue
            if stat.S_ISLNK(mode):
                yield Entry(prefix + entry.name, mode, os.readlink(entry.path))  # noqa: PTH115 - text, as it stands there
            elif mode & stat.S_IWOTH or (mode & (stat.S_ISUID | stat.S_ISGID) and stat.S_ISREG(mode)):
                yield Entry(prefix + entry.name, mode)
            if stat.S_ISDIR(mode) and entry.name not in _SKIPPED:
                stack.append(f"{prefix}{entry.name}/")


def _is_test(name: str) -> bool:
    file = name.rpartition("/")[2]
    return (
        file.startswith(("test_", "conftest"))
        or "_test." in file
        or ".test." in file
        or ".spec." in file
        or "tests/" in name
    )
