"""Walk to physical paths without following any link, so that a swap is a failure and not a detour.

A path that was physical when it was decided about can lead elsewhere a moment later: whoever may write
one of its folders exchanges it for a link. lstat follows every part but the last. So paths are walked
part by part with O_NOFOLLOW, each folder held by descriptor; what is found is what was decided about.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_MOST_FOLDERS = 100
_MOST_LINKS = 40  # as in Linux (MAXSYMLINKS)
_NO_MORE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Walker:
    """Opens folders and keeps the latest of them until the end of the `with` block.

    Not all: a workspace may have more folders than a process may have descriptors, and one that can't
    be opened for want of them must not look absent.
    """

    def __init__(self) -> None:
        self._folders: dict[str, int | None] = {}

    def __enter__(self) -> Walker:  # noqa: PYI034 - Self came with Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        while self._folders:
            self._forget()

    def folder(self, path: str) -> int | None:
        """Return a descriptor of a folder; None when it is absent, no folder, or behind a link.

        The descriptor is open until other folders are asked for. Raises OSError when the process can't
        open more.
        """
        if path in self._folders:
            return self._folders[path]
        missing = []
        place = path
        while place not in self._folders and place != "/":
            missing.append(place)
            place = place.rpartition("/")[0] or "/"
        descriptor = self._folders[place] if place in self._folders else self._open("/", None)
        self._keep(place, descriptor)
        for place in reversed(missing):
            if descriptor is not None:
                descriptor = self._open(place.rpartition("/")[2], descriptor)
            self._keep(place, descriptor)
        return descriptor

    def _open(self, name: str, parent: int | None) -> int | None:
        """Open a folder in one that is open."""
        try:
            return os.open(name, _FOLDER, dir_fd=parent)
        except OSError as problem:
            if problem.errno in _NO_MORE:
                raise
            return None

    def _keep(self, path: str, descriptor: int | None) -> None:
        """Keep a folder as the latest, and let the oldest go."""
        self._folders.pop(path, None)
        self._folders[path] = descriptor
        while len(self._folders) > _MOST_FOLDERS:
            self._forget()

    def _forget(self) -> None:
        """Close the oldest folder."""
        descriptor = self._folders.pop(next(iter(self._folders)))
        if descriptor is not None:
            os.close(descriptor)

    def look(self, path: Path) -> os.stat_result | None:
        """Return what lies at a physical path, a link as itself; None when nothing does or a link is on the way."""
        text = str(path)
        above, _, name = text.rpartition("/")
        parent = self.folder(above or "/")
        if parent is None:
            return None
        try:
            return os.stat(name or ".", dir_fd=parent, follow_symlinks=False)
        except OSError:
            return None

    def first_link(self, path: Path) -> Path | None:
        """Return the first part on the way to a path that is a link; None when there is none, or nothing at all."""
        place = text = os.fspath(path)
        while self.folder(above := place.rpartition("/")[0] or "/") is None:
            place = above
        if place is text:
            return None
        found = self.look(Path(place))
        return Path(place) if found is not None and stat.S_ISLNK(found.st_mode) else None


def link_nodes(path: Path) -> tuple[list[Path], Path | None]:
    """Follow a path part by part; return each link on the way, by its physical path, and where it ends.

    One that goes round, or over more links than the kernel follows, ends nowhere: None.
    """
    nodes: list[Path] = []
    at = "/"
    ahead = [part for part in reversed(os.fspath(path).split("/")) if part]
    while ahead:
        part = ahead.pop()
        if part in {".", ".."}:
            at = at if part == "." else os.path.dirname(at)  # noqa: PTH120 - text throughout
            continue
        here = os.path.join(at, part)  # noqa: PTH118
        try:
            target = os.readlink(here)  # noqa: PTH115 - text, as it is in the link
        except OSError:
            at = here
            continue
        if len(nodes) == _MOST_LINKS:
            return nodes, None
        nodes.append(Path(here))
        at = "/" if target.startswith("/") else at
        ahead += [part for part in reversed(target.split("/")) if part]
    return nodes, Path(at)
