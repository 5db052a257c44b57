"""Landscape: what the disk says about the paths of a policy, read once, so that plans can be pure.

A plan ties every granted path to a device and an inode. Where a denied or protected path lies inside
a granted folder and the backend can only allow, the folder has to be split into its other entries;
their names come from here.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.errors import ConfigError
from skillrun.problem import error
from skillrun.sandbox.policy import Access

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillrun.sandbox.policy import PathRule, Policy

_MOST_ENTRIES = 1_000  # of one split, DESIGN 8


@dataclass(frozen=True, slots=True)
class Spot:
    """What lies at a path: its identity and whether it is a folder."""

    device: int
    inode: int
    folder: bool
    names: int = 1  # hard links of a file


@dataclass(frozen=True, slots=True)
class Landscape:
    """Spots of the paths that exist, and the entries of folders between a root and what is kept in it.

    Entries that are links are left out: a rule on a link would be a rule on its target. `program` is what is executed, links
    followed. `pins` are the folders between a granted root and what is kept in it, `links` the targets
    of the link nodes that the run needs, `present` the kept paths that were there at all.
    """

    spots: Mapping[Path, Spot]
    entries: Mapping[Path, tuple[Path, ...]]
    program: Spot | None = None
    pins: Mapping[Path, Spot] = field(default_factory=dict)
    links: Mapping[Path, str] = field(default_factory=dict)
    present: frozenset[Path] = frozenset()


def survey(policy: Policy, *, split: bool) -> Landscape:
    """Read the spots and entries that a plan for this policy needs.

    `split` asks for the entries of folders that have to be granted in parts.

    Raises ConfigError when a granted path was swapped for a link since it was resolved, or when a
    split would need more than 1,000 rules.
    """
    paths = {*(rule.path for rule in policy.rules), policy.cwd, *(kept.path for kept in policy.kept)}
    spots = {path: spot for path in paths if (spot := _spot(path)) is not None}
    for rule in policy.rules:
        _check_present(rule, spots)
    between = {
        folder
        for rule in policy.rules
        for kept in policy.kept
        if kept.path in spots and rule.path in kept.path.parents
        for folder in _between(rule.path, kept.path)
    }
    entries = {folder: _list(folder, spots) for folder in sorted(between)} if split else {}
    pins = {folder: spot for folder in between if (spot := _spot(folder)) is not None}
    links = {path: target for path in policy.links if (target := _target(path)) is not None}
    present = frozenset(kept.path for kept in policy.kept if kept.path in spots or os.path.lexists(kept.path))
    return Landscape(spots, entries, _program(policy.argv[0]), pins, links, present)


def _check_present(rule: PathRule, spots: Mapping[Path, Spot]) -> None:
    """Raise ConfigError when a granted path is gone or became a link.

    A path to read that is not there grants nothing, and will not while the run lasts. One to write was
    made if it was missing, and a link in either's place was not there when it was resolved.
    """
    if rule.path not in spots and (rule.access is not Access.READ or os.path.lexists(rule.path)):
        message = f"`{rule.path}` was granted and is gone, or a link took its place"
        raise ConfigError(error("path-vanished", message))


def _between(root: Path, path: Path) -> Iterable[Path]:
    """Give the folders from a root down to the parent of a path below it."""
    return [folder for folder in path.parents if folder == root or root in folder.parents]


def _spot(path: Path) -> Spot | None:
    """Look at a physical path without following its last part; None when it is absent or a link.

    The parts before the last were physical when they were resolved. If one was swapped since, the
    inode found here is not the one that was compared, and the launcher's own look decides.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISLNK(found.st_mode):
        return None
    return Spot(found.st_dev, found.st_ino, stat.S_ISDIR(found.st_mode), found.st_nlink)


def _target(path: Path) -> str | None:
    """Return where a link node leads, None when it is none any more."""
    try:
        return str(path.readlink())
    except OSError:
        return None


def _program(path: str) -> Spot | None:
    """Look at the program to execute, through its links."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return Spot(found.st_dev, found.st_ino, folder=False)


def _list(folder: Path, spots: dict[Path, Spot]) -> tuple[Path, ...]:
    """List a folder's entries that are no links, noting their spots."""
    listed: list[Path] = []
    with os.scandir(folder) as found:
        for entry in found:
            if len(listed) >= _MOST_ENTRIES:
                raise ConfigError(
                    error(
                        "split-too-large",
                        f"`{folder}` has over {_MOST_ENTRIES} entries, and one of them must be kept from the script",
                        help="grant the sub-folders the script needs instead",
                    )
                )
            path = folder / entry.name
            spot = _spot(path)
            if spot is not None:
                spots[path] = spot
                listed.append(path)
    return tuple(sorted(listed))
