"""Search granted folders for what no grant means to give.

Sockets, pipes and devices are doors to other processes and no files: a read-only mount does not stop a
connection to a socket in it, and neither does Landlock's right to read. What is found is denied for the
run. Folders that hold protected names, such as a repository deep in a workspace, are found on the way.
The search is bounded; what follows where it could not be finished is the policy's business.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

MOST_ENTRIES: Final = 100_000  # names; about 0.2 s


@dataclass(frozen=True, slots=True)
class Search:
    """What was found: doors, each with its kind in words; folders with a protected name in them.

    `complete` says whether everything was looked at.
    """

    doors: tuple[tuple[Path, str], ...] = ()
    bases: tuple[Path, ...] = ()
    complete: bool = True


def search(roots: Collection[Path], names: frozenset[str]) -> Search:
    """Walk granted roots, never through links; a folder that can't be listed has no names for a script either.

    `names` are the first parts of protected names.
    """
    doors: list[tuple[Path, str]] = []
    bases: set[str] = set()
    pending = [os.fspath(root) for root in roots]
    left = MOST_ENTRIES
    while pending:
        folder = pending.pop()
        for entry in _entries(folder):
            left -= 1
            if left < 0:
                return Search(tuple(doors), _paths(bases), complete=False)
            if entry.name in names:
                bases.add(folder)
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                doors += _door(entry.path)
    # A root can be a door itself; no folder gives an entry for it.
    doors += [door for root in roots for door in _door(os.fspath(root))]
    return Search(tuple(doors), _paths(bases))


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """List a folder; nothing where it can't be listed or is none."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _door(path: str) -> list[tuple[Path, str]]:
    """Return a path with its kind when it is neither a file, a folder nor a link."""
    kind = _kind(path)
    return [] if kind is None else [(Path(path), kind)]


def _paths(folders: Iterable[str]) -> tuple[Path, ...]:
    """Give folders as paths, sorted."""
    return tuple(Path(folder) for folder in sorted(folders))


def _kind(path: str) -> str | None:
    """Say what a path is when it is neither a file, a folder nor a link."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    if stat.S_ISSOCK(mode):
        return "a socket: whoever listens there is outside"
    if stat.S_ISFIFO(mode):
        return "a pipe: whoever holds its other end is outside"
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        return "a device"
    return None
