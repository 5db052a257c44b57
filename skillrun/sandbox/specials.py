"""Look for sockets, pipes and devices under granted folders: doors to other processes that are no files.

A read-only mount does not stop a connection to a socket in it, and neither does Landlock's right to
read. So what is found is denied for the run. The look is bounded; where it could not be finished, the
run gets no unix sockets at all.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_ENTRIES: Final = 20_000  # names; about 40 ms


@dataclass(frozen=True, slots=True)
class Specials:
    """What was found, each with its kind in words, and whether everything was looked at."""

    found: tuple[tuple[Path, str], ...]
    complete: bool


def find_specials(roots: Iterable[Path]) -> Specials:
    """Walk granted roots, never through links; a folder that can't be listed has no names for a script either."""
    found: list[tuple[Path, str]] = []
    pending = [os.fspath(root) for root in roots]
    left = MOST_ENTRIES
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return Specials(tuple(found), complete=False)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                        kind = _kind(entry.path)
                        if kind is not None:
                            found.append((Path(entry.path), kind))
        except NotADirectoryError:
            kind = _kind(folder)
            if kind is not None:
                found.append((Path(folder), kind))
        except OSError:
            continue
    return Specials(tuple(found), complete=True)


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
