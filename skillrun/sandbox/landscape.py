"""Landscape: what the disk says about the paths of a policy, read once, so that plans can be pure.

A plan ties every granted path to a device and an inode. Where a denied or protected path lies inside
a granted folder and the backend can only allow, the folder has to be split into its other entries;
their names come from here.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillrun.errors import ConfigError
from skillrun.permissions.capabilities import below
from skillrun.permissions.closed import ClosedError
from skillrun.problem import error
from skillrun.sandbox.policy import Access, Kept
from skillrun.sandbox.walk import Walker, link_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from skillrun.permissions.access import Pin
    from skillrun.sandbox.policy import PathRule, Policy

_MOST_ENTRIES = 1_000  # of one split, DESIGN 8


@dataclass(frozen=True, slots=True)
class Spot:
    """What lies at a path: its identity and whether it is a folder."""

    device: int
    inode: int
    folder: bool
    names: int = 1  # hard links of a file
    link: bool = False  # only of kept paths: the node itself, whatever it leads to
    changed: int = 0  # st_ctime_ns: a number that was freed is used again, and a second name is the same file
    regular: bool = True  # a file with content of its own: no folder, no door


@dataclass(frozen=True, slots=True)
class Landscape:
    """Spots of the paths that exist, and the entries of folders between a root and what is kept in it.

    Entries that are links are left out: a rule on a link would be a rule on its target. `program` is what is executed, links
    followed. `pins` are the folders between a granted root and what is kept in it, `links` the targets
    of the link nodes that the run needs. `kept` is the policy's and, where one of those is reached through
    a link, the node and what it leads to; `present` are those that were there at all. `ends` gives where a kept link that
    can be followed ends, a physical path, and what lies there.
    """

    spots: Mapping[Path, Spot]
    entries: Mapping[Path, tuple[Path, ...]]
    program: Spot | None = None
    pins: Mapping[Path, Spot] = field(default_factory=dict)
    links: Mapping[Path, str] = field(default_factory=dict)
    kept: tuple[Kept, ...] = ()
    present: frozenset[Path] = frozenset()
    ends: Mapping[Path, tuple[Path, Spot]] = field(default_factory=dict)


def survey(policy: Policy, *, split: bool) -> Landscape:
    """Read the spots and entries that a plan for this policy needs.

    `split` asks for the entries of folders that have to be granted in parts.

    Raises ConfigError when a granted path was swapped for a link since it was resolved, when what must be kept from the
    script can't be looked at, or when a split would need more than 1,000 rules.
    """
    roots = tuple(rule.path for rule in policy.rules)
    with Walker() as walker:
        spots = _spots({*roots, policy.cwd}, walker)
        for rule in policy.rules:
            _check_present(rule, spots)
        looked = {entry.path: _look(entry.path, walker) for entry in policy.kept}
        kept = _strictest(_with_links(policy.kept, looked, roots, walker))
        looked.update((entry.path, _look(entry.path, walker)) for entry in kept if entry.path not in looked)
        present = {path: found for path, found in looked.items() if isinstance(found, os.stat_result)}
        hidden = {entry.path for entry in kept if not entry.readable and entry.path in present}
        _check_open(looked)
        spots.update((path, _spot(found)) for path, found in present.items())
        ends = {path: end for path in present if spots[path].link and (end := _end(path, walker))}
        between = {
            folder
            for root in roots
            for path in present
            if below(path, root) and hidden.isdisjoint(path.parents)
            for folder in _between(root, path)
        }
        entries = {folder: _list(folder, spots, walker) for folder in sorted(between)} if split else {}
        pins = _spots(between, walker)
        if gone := between.difference(pins):
            message = f"`{min(gone)}` was replaced while it was looked at"
            raise ConfigError(error("path-vanished", message, help="run it again"))
    links = {path: target for path in policy.links if (target := _target(path)) is not None}
    return Landscape(
        spots,
        entries,
        program=_program(policy.argv[0]),
        pins=pins,
        links=links,
        kept=kept,
        present=frozenset(present),
        ends=ends,
    )


def hold(pins: Iterable[Pin], landscape: Landscape) -> None:
    """Raise ConfigError when a file that an argument named is another one than was decided about."""
    for pin in pins:
        spot = landscape.spots.get(pin.path)
        if spot is None or (spot.device, spot.inode) != (pin.device, pin.inode):
            message = f"`{pin.path}` was granted by an argument, and was replaced before the start"
            raise ConfigError(error("path-vanished", message))


def _look(path: Path, walker: Walker) -> os.stat_result | ClosedError | None:
    """Look at a path that is kept, which may lie where nobody can."""
    try:
        return walker.look(path)
    except ClosedError as closed:
        return closed


def _check_open(looked: Mapping[Path, os.stat_result | ClosedError | None]) -> None:
    """Raise ConfigError for what is kept from the script and can't be looked at, and so not be covered.

    It may be a link to anything that is granted, also where the folder that hides it is covered as a whole. Where that is not
    ours, no script has closed it, and none can open it.
    """
    for found in looked.values():
        if isinstance(found, ClosedError) and found.ours:
            raise found


def _with_links(
    kept: Sequence[Kept],
    looked: Mapping[Path, os.stat_result | ClosedError | None],
    roots: Sequence[Path],
    walker: Walker,
) -> Iterator[Kept]:
    """Give kept paths; of one that is or lies behind links, every node and the physical path as well.

    Keeping only what a link leads to would leave the node to be replaced, and the other way round.
    """
    for entry in kept:
        yield entry
        found = looked[entry.path]
        if isinstance(found, ClosedError):
            continue
        direct = found is not None and not stat.S_ISLNK(found.st_mode)
        if direct or (found is None and walker.first_link(entry.path) is None):
            continue
        nodes, real = link_nodes(entry.path)
        for node in nodes:
            if node != entry.path and any(below(node, root) for root in roots):
                yield Kept(node, entry.reason, readable=entry.readable)
        if real is not None and real != entry.path:
            yield Kept(real, entry.reason, readable=entry.readable)


def _end(node: Path, walker: Walker) -> tuple[Path, Spot] | None:
    """Give where a link ends, and what lies there; None where that is nothing, or nowhere."""
    real = link_nodes(node)[1]
    if real is None:
        return None
    found = _look(real, walker)
    if not isinstance(found, os.stat_result) or stat.S_ISLNK(found.st_mode):
        return None
    return real, _spot(found)


def _strictest(kept: Iterable[Kept]) -> tuple[Kept, ...]:
    """Give each path once: what may not be read stays so when something that may leads to it."""
    found: dict[Path, Kept] = {}
    for entry in kept:
        known = found.get(entry.path)
        if known is None or (known.readable and not entry.readable):
            found[entry.path] = entry
    return tuple(found.values())


def _spots(paths: Iterable[Path], walker: Walker) -> dict[Path, Spot]:
    """Look at paths; those that are absent, closed or links are left out."""
    found = ((path, _look(path, walker)) for path in paths)
    there = ((path, it) for path, it in found if isinstance(it, os.stat_result))
    return {path: _spot(it) for path, it in there if not stat.S_ISLNK(it.st_mode)}


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
    return [folder for folder in path.parents if folder == root or below(folder, root)]


def _spot(found: os.stat_result) -> Spot:
    """Describe what was found."""
    mode = found.st_mode
    return Spot(
        found.st_dev,
        found.st_ino,
        stat.S_ISDIR(mode),
        names=found.st_nlink,
        link=stat.S_ISLNK(mode),
        changed=found.st_ctime_ns,
        regular=stat.S_ISREG(mode),
    )


def _target(path: Path) -> str | None:
    """Return where a link node leads, None when it is none any more."""
    try:
        return os.readlink(path)  # noqa: PTH115 - text, and on the path of every run
    except OSError:
        return None


def _program(path: str) -> Spot | None:
    """Look at the program to execute, through its links."""
    try:
        found = os.stat(path)  # noqa: PTH116 - on the path of every run
    except OSError:
        return None
    return Spot(found.st_dev, found.st_ino, folder=False)


def _list(folder: Path, spots: dict[Path, Spot], walker: Walker) -> tuple[Path, ...]:
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
            if path not in spots:
                spots.update(_spots([path], walker))
            if path in spots and not spots[path].link:
                listed.append(path)
    return tuple(sorted(listed))
