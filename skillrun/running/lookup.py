"""Lookup: from the name of a skill to what is to be started, for one workspace and one host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.errors import SkillError, UsageError
from skillrun.permissions.place import Place
from skillrun.permissions.project import repository_root
from skillrun.permissions.voices import Voice, listen
from skillrun.problem import error
from skillrun.roots import look_through, skill_roots
from skillrun.sandbox.complete import Subject
from skillrun.skills.digest import identity
from skillrun.skills.interpreter import family_of, find_interpreter
from skillrun.skills.model import Command, Starter
from skillrun.skills.scripts import choose_script
from skillrun.skills.skill import read_skill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.host import Host
    from skillrun.permissions.layers import Layers
    from skillrun.permissions.resolve import Resolver
    from skillrun.skills.catalog import Catalog
    from skillrun.skills.model import Interpreter, Skill

_MOST_VOICES: Final = 1_000  # versions of skills remembered by one runner; a bound on memory


class Lookup:
    """Finds skills, scripts and interpreters. Thread-safe: what it remembers may at worst be found twice."""

    def __init__(self, *, workspace: Path, host: Host, layers: Layers, named_roots: tuple[Path, ...]) -> None:
        self._workspace = workspace
        self._host = host
        self._layers = layers
        self._named_roots = named_roots
        self._interpreters: dict[Command, tuple[tuple[int, ...], Interpreter]] = {}
        self._voices: dict[tuple[Path, Path | None, str], tuple[Skill, Voice]] = {}

    def find(self, skill: Skill | Path | str) -> Skill:
        """Return a skill given as itself, by its folder (a Path, or text with a slash), or by its key.

        Raises UsageError for an unknown key, SkillError for a folder that can't be read as a skill.
        """
        if isinstance(skill, str) and ("/" in skill or skill in {".", ".."}):
            skill = self._workspace / skill
        if isinstance(skill, str):
            return self.catalog().by_key(skill)
        if isinstance(skill, Path):
            return read_skill(skill, repository=repository_root(skill), home=self._host.home)
        return skill

    def catalog(self) -> Catalog:
        """Look through every root."""
        return look_through(self.roots(), self._host)

    def roots(self) -> tuple[tuple[Path, bool], ...]:
        """Give the roots that exist or were named, each with whether it is the operator's own."""
        return skill_roots(self._workspace, self._host, self._named_roots)

    def subject(self, skill: Skill, script: str | None, arguments: Sequence[str]) -> Subject:
        """Identify what is to be started: the script, its bytes, and its interpreter.

        Raises SkillError for a skill that is not valid: nothing of it runs, on no guess (law 3).
        """
        if not skill.valid:
            raise SkillError(*(p for p in skill.problems if p.severity.value == "error"))
        chosen = choose_script(skill, script)
        return Subject(
            skill=skill,
            script=chosen,
            identity=identity(chosen.path),
            interpreter=self._interpreter(chosen.command),
            arguments=tuple(arguments),
        )

    def voice(self, skill: Skill, version: str) -> Voice:
        """Listen to a skill and to the operator about it; once for each version of a skill, as the same object.

        The version does not tell all: a skill is called by the link it was found by where it has no name, and a SKILL.md
        that is a link counts by what the link says.
        """
        key = (skill.path, skill.root, version)
        known = self._voices.get(key)
        if known is None or (known[0] is not skill and known[0] != skill):
            if len(self._voices) >= _MOST_VOICES:
                self._voices.clear()
            known = self._voices[key] = skill, listen(skill, self._layers, version)
        return known[1]

    def check_workspace(self, resolver: Resolver) -> None:
        """Raise UsageError when the workspace is no more what it was, by the picture of the disk that is decided by."""
        there = resolver.follow(str(self._workspace))
        if there.links or not there.is_dir:
            message = f"the workspace `{self._workspace}` was replaced by something else, or is gone"
            raise UsageError(error("workspace-gone", message, help="name a workspace that stays"))

    def place(self, skill: Skill, scratch: Path) -> Place:
        """Describe where a run of a skill happens."""
        return Place(
            workspace=self._workspace,
            skill=skill.path,
            scratch=scratch,
            home=self._host.home,
            environ=self._host.environ,
        )

    def _interpreter(self, command: Command | None) -> Interpreter | None:
        """Find an interpreter: the operator's for its family, else the one the script names.

        A find is kept for the next run as long as the same file lies at the end of the same path.
        """
        if command is None or command.starter is Starter.NATIVE:
            return None
        own = dict(self._layers.interpreters).get(family_of(command.program))
        if own is not None:
            command = Command(command.starter, str(own), command.args)
        known = self._interpreters.get(command)
        if known is not None and known[0] == _signature(known[1].path):
            return known[1]
        search = self._host.environ.get("PATH", "")
        found = find_interpreter(command, search=search, home=self._host.home, refuse=(self._workspace,))
        self._interpreters[command] = (_signature(found.path), found)
        return found


def _signature(path: Path) -> tuple[int, ...]:
    """Return what changes when another file lies at the end of a path; empty when there is none."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns
