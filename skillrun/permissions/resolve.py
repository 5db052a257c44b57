"""Resolve: paths as written to physical paths, each once, links followed component by component.

What was compared is what the backend gets, so nothing here may be read a second time later by name
(law 5). One Resolver serves one decision: it remembers what it saw, so every path of that decision is
judged against one picture of the disk.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

_MOST_LINKS = 40  # the kernel's own bound (path_resolution(7))


class Disk(Protocol):
    """The three questions that are asked of a file system; tests bring their own."""

    def lstat(self, path: str) -> os.stat_result:
        """As `os.lstat`."""

    def readlink(self, path: str) -> str:
        """As `os.readlink`."""

    def listdir(self, path: str) -> list[str]:
        """As `os.listdir`."""


class HostDisk:
    """The file system of this machine."""

    lstat = staticmethod(os.lstat)
    readlink = staticmethod(os.readlink)
    listdir = staticmethod(os.listdir)


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where a path leads. `fault` says why it leads nowhere; `path` is then as far as it went.

    `links` are the link nodes that were followed, physical, in order.
    """

    path: Path
    exists: bool
    is_dir: bool
    fault: str | None = None
    links: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class _Node:
    name: str  # as the folder spells it
    mode: int | None  # None: not there
    target: str = ""
    fault: str | None = None


@dataclass(slots=True)
class Resolver:
    """Follows paths on one disk, remembering every component it has seen."""

    disk: Disk = field(default_factory=HostDisk)
    _nodes: dict[tuple[str, str], _Node] = field(default_factory=dict)
    _answers: dict[str, Resolved] = field(default_factory=dict)

    def follow(self, text: str) -> Resolved:
        """Resolve an absolute path. `..` goes to the physical parent, after links, as the kernel does."""
        answer = self._answers.get(text)
        if answer is None:
            answer = self._answers[text] = self._follow(text)
        return answer

    def exists(self, text: str) -> bool:
        """Whether a name in a physical folder is there, whatever it is."""
        parent, _, name = text.rpartition("/")
        return self._look(parent, name).mode is not None

    def leaf(self, text: str) -> tuple[Path, Path | None]:
        """Resolve all but the last component: the node itself, and what it leads to when it is a link."""
        parent, _, name = text.rstrip("/").rpartition("/")
        if name in {"", ".", ".."}:
            return self.follow(text).path, None
        folder = self.follow(parent or "/")
        top = str(folder.path).rstrip("/")
        if not folder.is_dir:
            return Path(f"{top}/{name}"), None
        node = self._look(top, name)
        if node.mode is None or not stat.S_ISLNK(node.mode):
            return Path(f"{top}/{node.name}"), None
        target = self.follow(text)
        return Path(f"{top}/{node.name}"), target.path

    def folds(self, folder: Path) -> bool:
        """Whether names in a physical folder differ by more than case: tried by device and inode, not by system name."""
        parent, _, name = str(folder).rpartition("/")
        other = name.swapcase()
        return other != name and self._same(f"{parent}/{name}", f"{parent}/{other}")

    def _follow(self, text: str) -> Resolved:
        here, links, node = "", [], None
        missing: list[str] = []
        rest = _parts(text)
        tail = -1  # names still to come after the outermost link that is being followed; -1: none is
        while rest:
            name = rest.pop()
            if name == "..":
                if missing:
                    missing.pop()  # a name that is not there is no link either, so this is safe as text
                else:
                    here = here.rpartition("/")[0]
                node = None
                continue
            if missing:
                missing.append(name)
                continue
            node = self._look(here, name)
            if node.fault is not None:
                return _nowhere(f"{here}/{name}", node.fault, links)
            if node.mode is None:
                if 0 <= tail <= len(rest):
                    # A write through it would create the target, outside of what anybody compared (C-13).
                    return _nowhere(f"{here}/{name}", "a link on the way leads to nothing", links)
                missing.append(name)
            elif stat.S_ISLNK(node.mode):
                links.append(Path(f"{here}/{node.name}"))
                if len(links) > _MOST_LINKS:
                    return _nowhere(f"{here}/{name}", "too many links on the way", links)
                tail = tail if 0 <= tail <= len(rest) else len(rest)
                here = "" if node.target.startswith("/") else here
                rest.extend(_parts(node.target))
            elif rest and not stat.S_ISDIR(node.mode):
                return _nowhere(f"{here}/{name}", f"`{here}/{name}` is not a folder", links)
            else:
                here = f"{here}/{node.name}"
        path = Path("/".join((here, *missing)) or "/")
        # Without a last node the way ended at `/`, at a parent, or at a link to one of them: all folders.
        is_dir = not missing and (node is None or node.mode is None or not _is_leaf(node.mode))
        return Resolved(path, exists=not missing, is_dir=is_dir, links=tuple(links))

    def _look(self, parent: str, name: str) -> _Node:
        key = (parent, name)
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = self._read(parent, name)
        return found

    def _read(self, parent: str, name: str) -> _Node:
        path = f"{parent}/{name}"
        try:
            seen = self.disk.lstat(path)
            target = self.disk.readlink(path) if stat.S_ISLNK(seen.st_mode) else ""
        except (FileNotFoundError, NotADirectoryError):
            return _Node(name, None)
        except (OSError, ValueError) as failure:
            return _Node(
                name, None, fault=f"it cannot be looked up: {getattr(failure, 'strerror', None) or failure}"
            )
        return _Node(self._true_name(parent, name), seen.st_mode, target)

    def _true_name(self, parent: str, name: str) -> str:
        # `~/.SSH` opens `~/.ssh` where letter case does not count, and resolving links does not change it (C-12).
        others = {name.swapcase(), unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)} - {
            name
        }
        if not any(self._same(f"{parent}/{name}", f"{parent}/{other}") for other in others):
            return name
        try:
            names = self.disk.listdir(parent or "/")
        except OSError:
            return name
        # Two hard links can be called `A` and `a` where case does count: then both are listed, and each keeps its name.
        return name if name in names else next((n for n in names if fold(n) == fold(name)), name)

    def _same(self, one: str, other: str) -> bool:
        try:
            left, right = self.disk.lstat(one), self.disk.lstat(other)
        except (OSError, ValueError):
            return False
        return (left.st_dev, left.st_ino) == (right.st_dev, right.st_ino)


def fold(name: str) -> str:
    """Return a name as a volume compares it that ignores letter case and Unicode form."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _is_leaf(mode: int) -> bool:
    return not (stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _parts(text: str) -> list[str]:
    return [part for part in reversed(text.split("/")) if part not in {"", "."}]


def _nowhere(path: str, fault: str, links: list[Path]) -> Resolved:
    return Resolved(Path(path), exists=False, is_dir=False, fault=fault, links=tuple(links))
