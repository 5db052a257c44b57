# ruff: noqa: PTH115, PTH118, PTH120 - the walk over thousands of skills is on the path of `list`; pathlib costs it half its time
"""Touching files that belong to somebody else: bounded, never waiting, never through a last link."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

# A FIFO would make a plain open wait for ever, and a link could have been put there since the listing.
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK: Final = 1 << 20
LINK_LIMIT: Final = 40
"""Links in one path before it counts as a cycle: what Linux allows."""
_HOME_PARENTS: Final = ("/home", "/Users", "/var/home")
_ROOT_HOMES: Final = ("/root", "/var/root")


class NotRegularError(OSError):
    """A path leads to something that is no regular file: a FIFO, a device, a socket, a folder."""


class LinkError(NotRegularError):
    """The last component of a path is a link."""


def open_regular(path: str | Path | bytes) -> tuple[int, os.stat_result]:
    """Open a regular file for reading, its last component not a link; the caller closes the descriptor.

    Raises OSError, among them LinkError and NotRegularError.
    """
    # Opening a device can act on it (rewind a tape, take a lock), so it is looked at before and again after.
    mode = os.lstat(path).st_mode
    if not stat.S_ISREG(mode):
        raise (
            LinkError(0, "it is a link")
            if stat.S_ISLNK(mode)
            else NotRegularError(0, "it is not a regular file")
        )
    fd = os.open(path, _FLAGS)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise NotRegularError(0, "it is not a regular file")
    return fd, status


def read_start(path: str | Path, size: int) -> tuple[bytes, os.stat_result]:
    """Read at most `size` bytes from the start of a regular file. Raises OSError."""
    fd, status = open_regular(path)
    try:
        data = os.read(
            fd, min(size, status.st_size + 1)
        )  # a buffer of the whole limit costs more than the reading
        while data and len(data) < min(size, status.st_size):  # a short read, on network file systems
            more = os.read(fd, min(size, status.st_size) - len(data))
            if not more:
                break
            data += more
        return data, status
    finally:
        os.close(fd)


def is_inside(path: str, folder: str) -> bool:
    """Whether a physical path is a folder or lies below it, compared by component."""
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


def home_or_above(path: str | Path, home: Path | None) -> bool:
    """Whether a physical folder is a home folder, anybody's, or lies above one.

    `home` is the caller's, physical too; other people's are known by where systems keep them.
    """
    text = os.fspath(path)
    if text == "/" or text in _HOME_PARENTS or text in _ROOT_HOMES or os.path.dirname(text) in _HOME_PARENTS:
        return True
    if any(is_inside(parent, text) for parent in _HOME_PARENTS):
        return True
    return home is not None and is_inside(os.fspath(home), text)


def links_on_the_way(path: str | Path) -> tuple[tuple[str, ...], str]:
    """Return every link node that opening an absolute path goes through, in that order, and the physical end.

    Each node is given with its own parent physical: it's the place where a sandbox looks it up. Raises
    OSError where something is missing or the links go in a circle.
    """
    links: list[str] = []
    done = "/"
    left = [part for part in reversed(os.fspath(path).split("/")) if part not in ("", ".")]
    while left:
        part = left.pop()
        if part == "..":
            done = os.path.dirname(done)
            continue
        node = os.path.join(done, part)
        if not stat.S_ISLNK(os.lstat(node).st_mode):
            done = node
            continue
        links.append(node)
        if len(links) > LINK_LIMIT:
            raise OSError(0, "the links go in a circle")
        target = os.readlink(node)
        if target.startswith("/"):
            done = "/"
        left.extend(piece for piece in reversed(target.split("/")) if piece not in ("", "."))
    return tuple(dict.fromkeys(links)), done
