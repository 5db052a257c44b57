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

from skillrun.permissions.capabilities import inside
from skillrun.permissions.closed import is_ours

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

    `links` are the link nodes that were followed, physical, in order. `shut` is a folder of our user's that can't be looked
    into, where that is the fault: a script with the right to write may have closed it, and may open it again.
    """

    path: Path
    exists: bool
    is_dir: bool
    fault: str | None = None
    links: tuple[Path, ...] = ()
    shut: Path | None = None

    def escape(self, *anchors: Path) -> Path | None:
        """Return a folder that the path left through a link that lies in it, or None.

        A workspace or a skill is content of somebody else: a link planted there must not decide where a
        line of the operator's leads (`${workspace}/out` as a link to `~/.ssh`).
        """
        if not self.links:
            return None
        left = (anchor for anchor in anchors if not inside(self.path, anchor))
        return next((anchor for anchor in left if any(inside(link, anchor) for link in self.links)), None)


@dataclass(frozen=True, slots=True)
class _Node:
    name: str  # as the folder spells it
    mode: int | None  # None: not there
    target: str = ""
    fault: str | None = None
    shut: bool = False  # the folder it would be in, which is ours


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

    def shut(self, text: str) -> Path | None:
        """Return the folder of ours because of which it can't be told what `leaf` would be."""
        parent, _, name = text.rstrip("/").rpartition("/")
        if name in {"", ".", ".."}:
            return self.follow(text).shut
        folder = self.follow(parent or "/")
        if not folder.is_dir:
            return folder.shut
        node = self._look(str(folder.path).rstrip("/"), name)
        if node.mode is not None and stat.S_ISLNK(node.mode):
            return self.follow(text).shut
        return folder.path if node.shut else None

    def folds(self, folder: Path) -> bool:
        """Whether names in a physical folder differ by more than case: tried by device and inode, not by system name."""
        parent, _, name = str(folder).rpartition("/")
        other = name.swapcase()
        if other == name:
            return False
        try:
            seen = self.disk.lstat(f"{parent}/{name}")
        except (OSError, ValueError):
            return False
        return self._is(seen, f"{parent}/{other}")

    def _follow(self, text: str) -> Resolved:
        here = ""
        links: list[Path] = []
        missing: list[str] = []
        rest = _parts(text)
        tail = -1  # names still to come after the outermost link that is being followed; -1: none is
        leaf = False
        while rest:
            name = rest.pop()
            if missing or name == "..":
                # A name that is not there is no link either, so going up from it is safe as text.
                here = here if missing or name != ".." else here.rpartition("/")[0]
                _step(missing, name)
                continue
            node = self._look(here, name)
            within_link = 0 <= tail <= len(rest)
            fault = self._fault(node, here, more=bool(rest), within_link=within_link, links=len(links))
            if fault is not None:
                shut = Path(here or "/") if node.shut else None
                path = Path(f"{here}/{name}")
                return Resolved(path, exists=False, is_dir=False, fault=fault, links=tuple(links), shut=shut)
            if node.mode is None:
                missing.append(name)
            elif stat.S_ISLNK(node.mode):
                links.append(Path(f"{here}/{node.name}"))
                tail = tail if within_link else len(rest)
                here = "" if node.target.startswith("/") else here
                rest.extend(_parts(node.target))
            else:
                here = f"{here}/{node.name}"
                leaf = not stat.S_ISDIR(node.mode)
        path = Path("/".join((here, *missing)) or "/")
        # Whatever came last, `here` is a folder unless it was entered as something else: only a last name can be.
        return Resolved(path, exists=not missing, is_dir=not missing and not leaf, links=tuple(links))

    def _fault(self, node: _Node, here: str, *, more: bool, within_link: bool, links: int) -> str | None:
        if node.fault is not None:
            return node.fault
        if node.mode is None:
            # A write through such a link would create its target, outside of what anybody compared (C-13).
            return "a link on the way leads to nothing" if within_link else None
        if stat.S_ISLNK(node.mode):
            return "too many links on the way" if links >= _MOST_LINKS else None
        return f"`{here}/{node.name}` is not a folder" if more and not stat.S_ISDIR(node.mode) else None

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
            reason = getattr(failure, "strerror", None) or failure
            shut = isinstance(failure, PermissionError) and is_ours(parent or "/", self.disk.lstat)
            return _Node(name, None, fault=f"it cannot be looked up: {reason}", shut=shut)
        return _Node(self._true_name(parent, name, seen), seen.st_mode, target)

    def _true_name(self, parent: str, name: str, seen: os.stat_result) -> str:
        # `~/.SSH` opens `~/.ssh` where letter case does not count, and resolving links does not change it (C-12).
        others = {name.swapcase()}
        if not name.isascii():
            others |= {unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)}
        others.discard(name)
        if not any(self._is(seen, f"{parent}/{other}") for other in others):
            return name
        try:
            names = self.disk.listdir(parent or "/")
        except OSError:
            return name
        # Two hard links can be called `A` and `a` where case does count: then both are listed, and each keeps its name.
        return name if name in names else next((n for n in names if fold(n) == fold(name)), name)

    def _is(self, seen: os.stat_result, path: str) -> bool:
        """Whether what was seen lies at a path too."""
        try:
            there = self.disk.lstat(path)
        except (OSError, ValueError):
            return False
        return (seen.st_dev, seen.st_ino) == (there.st_dev, there.st_ino)


def fold(name: str) -> str:
    """Return a name as a volume compares it that ignores letter case and Unicode form."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _step(missing: list[str], name: str) -> None:
    if name != "..":
        missing.append(name)
    elif missing:
        missing.pop()


def _parts(text: str) -> list[str]:
    return [part for part in reversed(text.split("/")) if part not in {"", "."}]
