"""Grant: what a run may touch, and every cut that led to it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.permissions.access import Pin
    from skillrun.permissions.capabilities import Capabilities
    from skillrun.problem import At, Problem

Value: TypeAlias = str | int | float | bool | None


class Capability(enum.Enum):
    """The names of what can be asked for, as they are written in SKILL.md and in the JSON shapes."""

    FS_READ = "fs_read"
    FS_WRITE = "fs_write"
    NETWORK = "network"
    TIMEOUT = "timeout"
    TRUST = "trust"
    ENV = "env"
    LIMITS = "limits"


class Requirement(enum.Enum):
    """The least enforcement a run may have (DESIGN 8)."""

    NONE = "none"
    CONFINED = "confined"
    FULL = "full"


class Unconfined(enum.Enum):
    """Why a run is not confined at all; never a backend's shortcoming, always somebody's decision."""

    DISABLED = "sandbox.enabled is false"
    TRUSTED = "trust: core, listed under `trusted` with this digest"


class Cwd(enum.Enum):
    """The folder a script starts in."""

    WORKSPACE = "workspace"
    SKILL = "skill"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was granted, and where it was asked for.

    `asked` is how it was written (a path's own spelling) and `limit_at` the line of the ceiling that
    covers it; both are None when nobody asked and the value is the ceiling's own.
    """

    capability: Capability
    value: Value
    at: At
    asked: Value = None
    limit_at: At | None = None


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A request that was broader than the limit: what was asked, what is left of it; `resolved` is a path's physical form."""

    capability: Capability
    asked: Value
    given: tuple[Value, ...]
    asked_at: At
    limit_at: At
    resolved: Path | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A request of which nothing is left, with the reason in words; `resolved` is a path's physical form."""

    capability: Capability
    asked: Value
    reason: str
    asked_at: At
    limit_at: At
    resolved: Path | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """A physical path under a granted root that is neither readable nor writable.

    It need not exist; what does not exist can't be read, and may not be made either.
    """

    path: Path
    reason: str
    at: At


@dataclass(frozen=True, slots=True)
class Grant:
    """Request ∩ ceiling over resolved paths, with every cut explained.

    `capabilities` holds physical paths only. `missing` are write paths that did not exist when they
    were resolved, each with whether it is to be made as a folder; all lie inside the ceiling.
    `denied` is subtracted after the intersection. `warnings` are problems of the request or the
    ceiling that belong in every Result. `links` are the link nodes that granted paths were spelled through:
    a script that opens them by that spelling needs the nodes to be there. `pins` are the files that arguments
    named: a run must find these and no others.
    """

    capabilities: Capabilities
    granted: tuple[Item, ...] = ()
    narrowed: tuple[Narrowed, ...] = ()
    refused: tuple[Refused, ...] = ()
    denied: tuple[Denied, ...] = ()
    missing: tuple[tuple[Path, bool], ...] = ()
    require: Requirement = Requirement.CONFINED
    unconfined: Unconfined | None = None
    cwd: Cwd = Cwd.WORKSPACE
    approval: bool = False
    warnings: tuple[Problem, ...] = ()
    links: tuple[Path, ...] = ()
    pins: tuple[Pin, ...] = ()

    def allows_read(self, path: Path) -> bool:
        """Whether a physical path may be read: inside a root, and not denied."""
        return self.capabilities.allows_read(path) and self.denial(path) is None

    def allows_write(self, path: Path) -> bool:
        """Whether a physical path may be written: inside a root, and not denied."""
        return self.capabilities.allows_write(path) and self.denial(path) is None

    def denial(self, path: Path) -> Denied | None:
        """Return what denies a physical path, or None."""
        text = str(path)
        return next(
            (d for d in self.denied if text == (own := str(d.path)) or text.startswith(own + "/")), None
        )
