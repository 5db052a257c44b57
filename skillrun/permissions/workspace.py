"""The workspace rule: a folder that somebody works in, never a whole home or a part of the system."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.errors import UsageError
from skillrun.permissions.capabilities import inside
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Iterable

_SYSTEM: Final = tuple(
    Path(p)
    for p in (
        *(
            "/bin",
            "/boot",
            "/dev",
            "/etc",
            "/lib",
            "/lib32",
            "/lib64",
            "/libx32",
            "/proc",
            "/sbin",
            "/sys",
            "/usr",
        ),
        *("/System", "/Library", "/private/etc"),
    )
)
"""Folders that belong to the system with all that is in them."""
_OPEN: Final = tuple(Path(p) for p in ("/dev/shm", "/usr/src", "/usr/local/src"))  # noqa: S108 - a path to compare with
"""Folders in them that people do work below: `/usr/src/app` is the usual folder of a container image."""
_SHARED: Final = frozenset(
    Path(p)
    for p in (
        *("/", "/home", "/Users", "/root", "/var", "/var/lib", "/var/tmp", "/tmp", "/run", "/opt", "/srv"),  # noqa: S108 - paths to compare with
        *(
            "/mnt",
            "/media",
            "/Volumes",
            "/Applications",
            "/private",
            "/private/var",
            "/private/tmp",
            *map(str, _OPEN),
        ),
    )
)
"""Folders of everybody, or above everything; what lies in them may be a workspace."""
_HOMES: Final = (Path("/home"), Path("/Users"))


def check_workspace(path: Path, *, home: Path | None, allowed: Iterable[Path] = ()) -> Path:
    """Return the physical folder of a workspace. UsageError `workspace-refused` or `workspace-missing` says why not.

    `allowed` are the physical folders of the operator's own `workspaces` list: exactly these are let
    through, not what lies below them.
    """
    physical = path.resolve()
    if not os.path.isdir(physical):  # noqa: PTH112 - Path.is_dir raises for EACCES
        message = f"the workspace `{path}` is not a folder"
        raise UsageError(error("workspace-missing", message, help="name a folder with `--workspace`"))
    reason = _refusal(physical, home)
    if reason is None or physical in set(allowed):
        return physical
    message = f"`{physical}` cannot be a workspace: it is {reason}"
    advice = "go into the project's folder, or list this one under `workspaces` in your own skillrun.yaml"
    raise UsageError(error("workspace-refused", message, help=advice))


def _refusal(physical: Path, home: Path | None) -> str | None:
    real_home = None if home is None else home.resolve()
    if physical == Path("/"):
        return "the root of everything"
    if physical == real_home or physical.parent in _HOMES or physical == Path("/root"):
        return "a home folder"
    if real_home is not None and inside(real_home, physical):
        return "above your home folder"
    if physical in _SHARED:
        return "shared by everybody on this machine"
    system = any(inside(physical, root) for root in _SYSTEM)
    return "part of the system" if system and not any(inside(physical, root) for root in _OPEN) else None
