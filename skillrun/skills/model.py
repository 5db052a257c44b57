"""A skill as it lies on disk: values only, made by `discover`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.problem import Severity

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.problem import Problem
    from skillrun.skills.node import Mapping


class Starter(enum.Enum):
    """What says how a script is started."""

    SHEBANG = "shebang"
    EXTENSION = "extension"
    NATIVE = "native"  # an executable format: no interpreter


@dataclass(frozen=True, slots=True)
class Command:
    """How a script asks to be started, before anything was looked up on the host.

    `program` is an absolute path or a bare name to be found on PATH; it is empty for NATIVE. `args`
    come between the program and the script.
    """

    starter: Starter
    program: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """A file below `scripts/` that can be run, named by its path there (`sub/run.py`).

    `command` is None when it cannot be started; `problems` then say why. `tool` is false for tests
    and libraries, which still run by name.
    """

    name: str
    path: Path
    command: Command | None
    tool: bool
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Skill:
    """A folder with a SKILL.md.

    `path` is the physical folder, `found` the path it was found by (a link differs). `key` is what
    `run` finds it by, None when it is reachable by path only. `front` is the front matter with
    places, None when it could not be read: then nothing is granted and nothing runs.
    """

    key: str | None
    name: str | None
    description: str | None
    path: Path
    found: Path
    root: Path | None
    manifest: Path
    front: Mapping | None
    scripts: tuple[Script, ...]
    problems: tuple[Problem, ...]

    @property
    def valid(self) -> bool:
        """Whether nothing about the skill is an error."""
        return self.front is not None and all(p.severity is not Severity.ERROR for p in self.problems)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter found on this host.

    `path` is as found and is what is executed; `real` its physical file; `links` every link node on
    the way; `prefixes` the recognised install folders, physical, each needed to boot it. `family` is
    `python`, `node`, `bash`, `sh`, `ruby`, `perl`, or `other`. `args` come before the script.
    """

    path: Path
    real: Path
    links: tuple[Path, ...]
    prefixes: tuple[Path, ...]
    family: str
    args: tuple[str, ...] = ()
