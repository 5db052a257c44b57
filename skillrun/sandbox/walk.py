"""Walk to physical paths without following any link, so that a swap is a failure and not a detour.

A path that was physical when it was decided about can lead elsewhere a moment later: whoever may write
one of its folders exchanges it for a link. lstat follows every part but the last. So paths are walked
part by part with O_NOFOLLOW, each folder held by descriptor; what is found is what was decided about.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


class Walker:
    """Opens each folder once and keeps it until the end of the `with` block."""

    def __init__(self) -> None:
        self._folders: dict[str, int | None] = {}

    def __enter__(self) -> Walker:  # noqa: PYI034 - Self came with Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._folders.values():
            if descriptor is not None:
                os.close(descriptor)
        self._folders.clear()

    def folder(self, path: str) -> int | None:
        """Return a descriptor of a folder; None when it is absent, no folder, or behind a link."""
        if path in self._folders:
            return self._folders[path]
        descriptor: int | None = None
        try:
            if path == "/":
                descriptor = os.open("/", _FOLDER)
            else:
                above, _, name = path.rpartition("/")
                parent = self.folder(above or "/")
                descriptor = None if parent is None else os.open(name, _FOLDER, dir_fd=parent)
        except OSError:
            descriptor = None
        self._folders[path] = descriptor
        return descriptor

    def look(self, path: Path) -> os.stat_result | None:
        """Return what lies at a physical path, a link as itself; None when nothing does or a link is on the way."""
        text = os.fspath(path)
        above, _, name = text.rpartition("/")
        parent = self.folder(above or "/")
        if parent is None:
            return None
        try:
            return os.stat(name or ".", dir_fd=parent, follow_symlinks=False)
        except OSError:
            return None

    def link_on_the_way(self, path: Path, root: Path) -> Path | None:
        """Return the first part of a path, below a root, that is a link; None when there is none."""
        for place in (*reversed(path.parents), path):
            if root in place.parents:
                found = self.look(place)
                if found is None:
                    return None
                if stat.S_ISLNK(found.st_mode):
                    return place
        return None
