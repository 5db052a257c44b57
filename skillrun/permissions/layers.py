"""Layers: everything an operator and a project have said, read once, in the order in which it limits.

base (`--ceiling`, else the operator's file, else `default`) → project files → `skills.<key>` → machine
file and floors. Only the base may be replaced or raised; the rest narrows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.errors import ConfigError
from skillrun.permissions.bounds import absolute
from skillrun.permissions.closed import may_be
from skillrun.permissions.config import (
    Config,
    Role,
    SkillEntry,
    Tools,
    Trusted,
    preset_names,
    read_config,
    read_preset,
)
from skillrun.permissions.describe import Line, describe_ceiling
from skillrun.permissions.narrowing import check_narrows
from skillrun.permissions.near import near_key
from skillrun.permissions.place import Place
from skillrun.permissions.project import project_files, project_root
from skillrun.problem import At, Problem, error, warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillrun.permissions.ceiling import Bound, Ceiling
    from skillrun.permissions.grant import Requirement
    from skillrun.permissions.spelled import Spelled
    from skillrun.skills.model import Skill

HOME_ROOTS: Final = ("skills", ".agents/skills", ".claude/skills")
"""The operator's roots below home when none is named (DESIGN 11)."""
DEFAULT_PRESET: Final = "default"
NO_TOOLS: Final = Tools()


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of one workspace. A value: nothing here is read from disk again.

    `base` is complete. `hard` are the layers that no flag goes past: the machine file's and every
    floor. `trusted` lists who may be unconfined, where `trust_floor` is the requirement that forbids it.
    """

    base: Ceiling
    base_role: Role
    projects: tuple[Ceiling, ...] = ()
    hard: tuple[Ceiling, ...] = ()
    entries: tuple[SkillEntry, ...] = ()
    trusted: tuple[Trusted, ...] = ()
    trust_floor: Bound[Requirement] | None = None
    interpreters: tuple[tuple[str, Path], ...] = ()
    workspaces: tuple[Path, ...] = ()
    tools: Tools = NO_TOOLS
    operator_roots: tuple[Path, ...] = ()
    named_roots: tuple[Path, ...] = ()
    repository: Path | None = None
    problems: tuple[Problem, ...] = ()

    def bound_entries(self, skill: Skill, digest: str) -> tuple[tuple[SkillEntry, ...], tuple[Problem, ...]]:
        """Return the entries that speak about a skill, the strongest voice first, and what was wrong with others.

        An entry for another version asks for nothing any more, but still narrows: else a new version
        would be a way out of the limit that the old one had.
        """
        found: list[SkillEntry] = []
        problems: list[Problem] = []
        for entry in self.entries:
            if entry.key != skill.key or not self._binds(entry, skill, digest):
                continue
            if entry.digest in {None, digest}:
                found.append(entry)
                continue
            found.append(SkillEntry(entry.key, entry.at, entry.role, entry.digest, None, entry.ceiling))
            message = f"`skills.{entry.key}` was written for another version of this skill, so its request does not count"
            help_ = "look at what changed, then write the new digest"
            problems.append(warning("skill-entry-digest", message, at=entry.at, help=help_))
        return tuple(found), tuple(problems)

    def describe(self) -> tuple[Line, ...]:
        """Return every value of every layer with its place, in the order in which they limit, for people."""
        named = [(self.base_role.value, self.base), *((Role.PROJECT.value, c) for c in self.projects)]
        named.extend((f"skills.{e.key}", e.ceiling) for e in self.entries if e.ceiling is not None)
        named.extend(("floor or machine file", ceiling) for ceiling in self.hard)
        return tuple(line for label, ceiling in named for line in describe_ceiling(label, ceiling))

    def _binds(self, entry: SkillEntry, skill: Skill, digest: str) -> bool:
        named = skill.root is None or skill.root in self.named_roots
        if entry.role is Role.PROJECT:
            return self.repository is not None and _within(skill.path, (self.repository,))
        if entry.role is Role.NAMED:
            return named
        own = skill.root in self.operator_roots or _within(skill.path, self.operator_roots)
        # A version that the operator pinned and then named on the command line is no stranger of the same name.
        return own or (named and entry.digest == digest)


def load_layers(
    *,
    ceiling: Path | str | None,
    workspace: Path,
    config_file: Path | None,
    machine_file: Path | None,
    home: Path | None,
    operator_roots: Sequence[Path] | None = None,
    named_roots: Sequence[Path] = (),
) -> Layers:
    """Read every layer that holds for a workspace. ConfigError names what is wrong, with file and line.

    `ceiling` is a preset's name or a file (relative to the workspace). `config_file` and `machine_file`
    may be absent on disk. `operator_roots` are skill roots that are the operator's (default: those below
    home), `named_roots` those named on the command line.
    """
    workspace = workspace.resolve()
    own = _if_there(config_file, Role.OPERATOR)
    machine = _if_there(machine_file, Role.MACHINE)
    named = _named(ceiling, workspace)
    first = named or own
    default = read_preset(DEFAULT_PRESET).sandbox
    assert default is not None  # noqa: S101 - shipped, and a test reads it
    base = default if first is None or first.sandbox is None else first.sandbox.completed(default)
    voices = tuple(config for config in (named, own, machine) if config is not None)
    skip = tuple(path for path in (config_file, ceiling, machine_file) if path is not None)
    configs = tuple(
        read_config(path, Role.PROJECT)
        for path in project_files(workspace, but=[workspace / p for p in skip])
    )
    roots = (
        *((home / name for name in HOME_ROOTS) if home and operator_roots is None else operator_roots or ()),
    )
    place = _symbolic(workspace, home)
    hard = _hard(machine, own, named)
    layers = Layers(
        base=base,
        base_role=Role.PRESET if first is None else first.role,
        projects=tuple(config.sandbox for config in configs if config.sandbox is not None),
        hard=hard,
        entries=tuple(entry for config in (*voices, *configs) for entry in config.entries),
        trusted=tuple(t for config in (first, machine) if config is not None for t in config.trusted),
        trust_floor=_trust_floor(machine, own if named is not None else None),
        interpreters=_interpreters(voices, place),
        workspaces=tuple(Path(absolute(s, place)).resolve() for config in voices for s in config.workspaces),
        tools=_tools(voices),
        operator_roots=_spellings(roots),
        named_roots=_spellings(named_roots),
        repository=project_root(workspace),
    )
    problems = check_narrows(layers.projects, base, place)
    if problems:
        raise ConfigError(*problems)
    return layers


def operator_tools(
    *, ceiling: Path | str | None, here: Path, config_file: Path | None, machine_file: Path | None
) -> Tools:
    """Read what the operator says about tools, whatever project lies around `here`. ConfigError as `load_layers`."""
    own = _if_there(config_file, Role.OPERATOR)
    machine = _if_there(machine_file, Role.MACHINE)
    return _tools([one for one in (_named(ceiling, here), own, machine) if one is not None])


def _tools(voices: Iterable[Config]) -> Tools:
    """Take each key from the strongest voice that has it, and as much as the machine file has in any case.

    That nobody need be asked, all who speak of it must say. The machine file is a layer that nothing replaces
    (DESIGN 7.4): a kind of access that it wants a person's word for is one, whatever an operator's file lists.
    """
    said, machine = list[Tools](), list[Tools]()
    for config in voices:
        (machine if config.role is Role.MACHINE else said).append(config.tools)
    # The strongest that has the key, then the machine's.
    most = [
        next((one.max_tools for one in group if one.max_tools is not None), None) for group in (said, machine)
    ]
    kinds = [
        next((one.approve for one in group if one.approve is not None), None) for group in (said, machine)
    ]
    alone = [one.unattended_approval for one in (*said, *machine) if one.unattended_approval is not None]
    wanted = [kind for group in kinds for kind in group or ()]
    return Tools(
        min((one for one in most if one is not None), default=None),
        tuple(dict.fromkeys(wanted)) if kinds != [None, None] else None,
        all(alone) if alone else None,
    )


def _named(ceiling: Path | str | None, workspace: Path) -> Config | None:
    if ceiling is None:
        return None
    names = preset_names()
    if isinstance(ceiling, str) and ceiling in names:
        return read_preset(ceiling)
    path = workspace / ceiling
    looks_like_a_file = isinstance(ceiling, Path) or "/" in ceiling or ceiling.endswith((".yaml", ".yml"))
    if looks_like_a_file or os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for EACCES
        return read_config(path, Role.NAMED)
    near = near_key(str(ceiling), names)
    advice = f"did you mean `{near}`?" if near else f"presets are {', '.join(names)}; else name a file"
    raise ConfigError(
        error("ceiling-preset", f"`{ceiling}` is no preset and no file", at=At(flag="--ceiling"), help=advice)
    )


def _if_there(path: Path | None, role: Role) -> Config | None:
    # Only a name that is not there means "nothing was said"; one that can't be looked at is an error when it is opened.
    if path is None or not may_be(str(path)):
        return None
    config = read_config(path, role)
    enabled = config.sandbox.enabled if config.sandbox else None
    if role is Role.MACHINE and enabled is not None and not enabled.value:
        message = "the machine file only narrows; `enabled: false` is the operator's to say"
        raise ConfigError(error("ceiling-wider", message, at=enabled.at, help="remove the line"))
    return config


def _hard(machine: Config | None, own: Config | None, named: Config | None) -> tuple[Ceiling, ...]:
    found = (machine and machine.sandbox, machine and machine.floor, own and own.floor, named and named.floor)
    return tuple(ceiling for ceiling in found if ceiling)


def _trust_floor(*configs: Config | None) -> Bound[Requirement] | None:
    """Find what forbids unconfined trust: a voice above the one that trusts. A file's own floor does not contradict its own list."""
    machine, above = configs
    ceilings = [
        c for c in (machine and machine.sandbox, machine and machine.floor, above and above.floor) if c
    ]
    bounds = [c.require for c in ceilings if c.require is not None]
    return next((bound for bound in bounds if bound.value.value != "none"), None)


def _interpreters(voices: Iterable[Config], place: Place) -> tuple[tuple[str, Path], ...]:
    found: dict[str, Spelled] = {}
    for config in voices:
        for family, path in config.interpreters:
            found.setdefault(family, path)
    # Not resolved: an interpreter of an environment is executed by the path as found (DESIGN 8).
    return tuple((family, Path(absolute(path, place))) for family, path in found.items())


def _symbolic(workspace: Path, home: Path | None) -> Place:
    """Make a place for judging files before any skill is known: what a variable stands for is below nothing but itself."""
    real = None if home is None else home.resolve()
    return Place(workspace=workspace, skill=Path("/${skill}"), scratch=Path("/${scratch}"), home=real)


def _spellings(roots: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(spelling for root in roots for spelling in (root, root.resolve())))


def _within(path: Path, roots: Iterable[Path]) -> bool:
    return any(path == root or root in path.parents for root in roots)
