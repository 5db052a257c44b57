"""Policy: a grant and what the run needs by itself, with nothing of any platform in it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.permissions.capabilities import Limits
    from skillrun.permissions.grant import Requirement, Unconfined
    from skillrun.problem import Problem
    from skillrun.skills.digest import FileIdentity
    from skillrun.skills.model import Interpreter


class Access(enum.Enum):
    """What a rule gives."""

    READ = "read"  # and list, and execute
    WRITE = "write"  # and read


@dataclass(frozen=True, slots=True)
class PathRule:
    """One physical path that a run may use, with the reason in words.

    `own` ones were made for the run: they lie in a folder that is hidden from everybody, and count all the same.
    """

    path: Path
    access: Access
    reason: str
    own: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """A path under a granted root that must not be changed (protected) or not be touched at all (denied)."""

    path: Path
    reason: str
    readable: bool


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything about one run that a backend has to enforce or pass on. All paths are physical.

    `links` are link nodes through which granted paths and the interpreter are spelled. `searched` says
    that the granted folders were searched whole for sockets and protected names.
    """

    skill: Path
    workspace: Path
    scratch: Path
    cwd: Path
    argv: tuple[str, ...]
    environ: tuple[tuple[str, str], ...]
    script: Path
    script_identity: FileIdentity
    interpreter: Interpreter | None
    rules: tuple[PathRule, ...]
    kept: tuple[Kept, ...]
    links: tuple[Path, ...]
    network: bool
    searched: bool
    timeout: float
    limits: Limits
    require: Requirement
    unconfined: Unconfined | None
    warnings: tuple[Problem, ...] = ()

    def shortened(self, timeout: float) -> Policy:
        """Return the policy with a deadline of at most `timeout` seconds."""
        return replace(self, timeout=min(self.timeout, timeout))

    def with_events(self, answers: str = "") -> Policy:
        """Return the policy of a run that is told where it may write events (DESIGN 9: descriptor 3).

        `answers` is what a person has answered to the questions among them.
        """
        told = [("SKILLRUN_EVENTS_FD", "3"), *([("SKILLRUN_ANSWERS", answers)] if answers else [])]
        return replace(self, environ=tuple(sorted((*self.environ, *told))))

    @property
    def write_roots(self) -> tuple[Path, ...]:
        """The folders and files that the script may change, scratch included."""
        return tuple(rule.path for rule in self.rules if rule.access is Access.WRITE)
