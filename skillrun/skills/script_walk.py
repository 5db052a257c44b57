"""The files below a skill's `scripts/`, whatever links, devices and floods lie there."""

from __future__ import annotations

import itertools
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.problem import At, Problem, warning
from skillrun.skills.disk import is_inside

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH: Final = 3
"""Levels below `scripts/`, the file's own included (DESIGN 6)."""
ENTRY_LIMIT: Final = 5_000
"""Names looked at below one `scripts/`; the largest real one has 484 files."""

_BACKUP = re.compile(r"~$|^#.*#$|\.(?:bak|orig|rej|swp|swo|old|tmp|pyc|pyo)$", re.IGNORECASE)
# Folders of other people's code; dot folders go with the dot files.
_SKIPPED_FOLDERS: Final = frozenset({"__pycache__", "node_modules", "venv"})


class ScriptWalk:
    """A walk below `scripts/` that stays in the skill, whatever links lie there."""

    def __init__(self, skill_folder: Path, listing: list[os.DirEntry[str]] | None) -> None:
        self.skill = os.fspath(skill_folder)
        self.top = listing
        self.problems: list[Problem] = []
        self.seen: set[tuple[int, int]] = set()
        self.folders: list[tuple[str, str]] = []
        self.linked: list[tuple[str, str]] = []
        self.left = ENTRY_LIMIT

    def tell(self, rule: str, message: str, path: str, *, help_: str | None = None) -> None:
        """Note a warning about a path."""
        self.problems.append(warning(rule, message, at=At(Path(path)), help=help_))

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield name and physical path of each regular file.

        Real folders come first, linked ones after them and in order, so that what lies in both always
        has the same name.
        """
        top = f"{self.skill}/scripts"
        try:
            yield from self.among("", self.first(top))
            while self.folders or self.linked:
                if not self.folders:
                    self.linked.sort(reverse=True)
                prefix, path = (self.folders or self.linked).pop()
                yield from self.among(prefix, self.listing(path))
        except OSError as wrong:  # taken away since the listing, or a file system that answers late
            self.tell("scripts-unreadable", f"the folder can't be read: {wrong.strerror}", top)

    def among(self, prefix: str, entries: list[os.DirEntry[str]]) -> Iterator[tuple[str, str]]:
        """Yield the files among some entries and note the folders. Raises OSError."""
        for entry in entries:
            name = entry.name
            if name.startswith(".") or _BACKUP.search(name):
                continue
            path: str | None = entry.path
            is_file, is_link = entry.is_file(follow_symlinks=False), entry.is_symlink()
            if is_link:
                path = self.inside(entry.path)
                is_file = path is not None and stat.S_ISREG(os.lstat(path).st_mode)
            if path is None:
                continue
            if is_file:
                yield prefix + name, path
            elif prefix.count("/") < DEPTH - 1 and name not in _SKIPPED_FOLDERS:
                (self.linked if is_link else self.folders).append((f"{prefix}{name}/", path))

    def first(self, top: str) -> list[os.DirEntry[str]]:
        """List `scripts` itself, which may be missing or a link. Raises OSError."""
        try:
            status = os.lstat(top)
        except FileNotFoundError:
            return []
        if self.top is not None:
            self.seen.add((status.st_dev, status.st_ino))
            return self.bounded(self.top)
        inside = self.inside(top) if stat.S_ISLNK(status.st_mode) else top
        return self.listing(inside) if inside is not None else []

    def listing(self, folder: str) -> list[os.DirEntry[str]]:
        """List a folder, each once; what is no folder lists nothing, an error becomes a problem."""
        try:
            status = os.lstat(folder)
            if not stat.S_ISDIR(status.st_mode) or (status.st_dev, status.st_ino) in self.seen:
                return []
            self.seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                return self.bounded(list(itertools.islice(entries, ENTRY_LIMIT + 1)))
        except OSError as wrong:
            self.tell("scripts-unreadable", f"the folder can't be read: {wrong.strerror}", folder)
            return []

    def bounded(self, entries: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
        """Cut what would go over the limit of one skill, and say so once."""
        if self.left >= 0 and len(entries) > self.left:
            message = f"there are more than {ENTRY_LIMIT} files below `scripts`; not all are listed"
            self.tell("scripts-too-many", message, f"{self.skill}/scripts")
        kept = entries[: max(0, self.left)]
        self.left -= len(entries)
        return kept

    def inside(self, link: str) -> str | None:
        """Follow a link to its end; None, with a problem, where that is outside the skill or nowhere."""
        try:
            target = os.path.realpath(link, strict=True)
        except OSError:
            self.tell("script-link-dead", "the link leads nowhere", link, help_="remove it")
            return None
        if is_inside(target, self.skill):
            return target
        # The target is not named: it's a path of the operator's machine, and this text goes to whoever asked.
        message = f"`{link[len(self.skill) + 1 :]}` links out of the skill and is not followed"
        self.tell("script-link-out", message, link, help_="put the file into the skill")
        return None
