"""Search granted folders for what no grant means to give.

Sockets, pipes and devices are doors to other processes and no files: a read-only mount does not stop a
connection to a socket in it, and neither does Landlock's right to read. What is found is denied for the
run. Folders that hold protected names, such as a repository deep in a workspace, are found on the way.
The search is bounded; what follows where it could not be finished is the policy's business.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun import resources
from skillrun.permissions.closed import is_ours, may_be

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

MOST_ENTRIES: Final = 100_000  # names; about 0.2 s
_BY_WHOM_WE_ACT: Final = os.access in os.supports_effective_ids

# A folder with one of the first two sets of names is a repository to git (is_git_directory in its setup.c). With one of the
# others a script may have taken the rest away, to bring it back; its HEAD stays where it is (complete.py).
BARE: Final = (
    frozenset({"HEAD", "objects", "refs"}),
    frozenset({"HEAD", "commondir"}),
    frozenset({"HEAD", "config"}),
    frozenset({"HEAD", "hooks"}),
)


@dataclass(frozen=True, slots=True)
class Search:
    """What was found: doors, each with its kind in words; and folders with something in them.

    `bases` hold a protected name, `skills` a SKILL.md, `bare` are shaped like a bare git repository;
    `repositories` are `.git` folders, `git_files` such entries that are none. `shut` are the doors that are folders of our
    user's: a script may have closed them. `complete` says whether everything was looked at.
    """

    doors: tuple[tuple[Path, str], ...] = ()
    bases: tuple[Path, ...] = ()
    skills: tuple[Path, ...] = ()
    bare: tuple[Path, ...] = ()
    git_files: tuple[Path, ...] = ()
    repositories: tuple[Path, ...] = ()
    shut: tuple[Path, ...] = ()
    complete: bool = True


class _Findings:
    """A search under way."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.left = MOST_ENTRIES
        self.doors: list[tuple[Path, str]] = []
        self.bases: set[str] = set()
        self.skills: set[str] = set()
        self.bare: set[str] = set()
        self.git_files: set[str] = set()
        self.repositories: set[str] = set()
        self.shut: list[Path] = []

    def take(self, folder: str) -> list[str]:
        """Look at one folder and return the folders in it."""
        below: list[str] = []
        is_open = os.access(folder, os.X_OK, effective_ids=_BY_WHOM_WE_ACT)
        seen = set() if is_open else self._closed(folder)
        for entry in self._entries(folder) if is_open else ():
            self.left -= 1
            seen.add(entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder:
                below.append(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                self.take_door(entry.path)
            if entry.name == ".git":
                (self.repositories if is_folder else self.git_files).add(entry.path)
            if self.left < 0:
                return []
        if seen & self.names:
            self.bases.add(folder)
        if "SKILL.md" in seen:
            self.skills.add(folder)
        if "HEAD" in seen and any(seen >= shape for shape in BARE) and not folder.endswith("/.git"):
            self.bare.add(folder)
        return below

    def take_door(self, path: str) -> None:
        """Take what is neither a file, a folder nor a link for a door."""
        try:
            kind = _kind(path)
        except OSError as problem:
            self._unlisted(path, problem)
        else:
            if kind is not None:
                self.doors.append((Path(path), kind))

    def _closed(self, folder: str) -> set[str]:
        """Take a folder that can't be looked into for a door; its names can be told all the same where it can be listed."""
        try:
            seen = set(os.listdir(folder))  # noqa: PTH208 - only names are needed
        except (FileNotFoundError, NotADirectoryError):
            return set()
        except OSError as problem:
            self._unlisted(folder, problem)
            return set()
        self.left -= len(seen)
        self._shut(folder, "it can't be looked into")
        return seen

    def _unlisted(self, folder: str, problem: OSError) -> None:
        """Take a folder that can't be listed for a door."""
        reason = f"it can't be searched ({problem.strerror})"
        if problem.errno == errno.ENAMETOOLONG:  # no call takes it: the folder that it is in is covered
            self.doors.append((Path(folder).parent, reason))
        else:
            self._shut(folder, reason)

    def _shut(self, folder: str, reason: str) -> None:
        """Take a folder that may hold anything for a door: it is kept from the script itself."""
        self.doors.append((Path(folder), reason))
        if is_ours(folder):
            self.shut.append(Path(folder))

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        """List a folder."""
        try:
            with os.scandir(folder) as entries:
                yield from entries
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as problem:
            self._unlisted(folder, problem)

    def done(self, *, complete: bool) -> Search:
        """Return what was found."""
        return Search(
            doors=tuple(self.doors),
            bases=_paths(self.bases),
            skills=_paths(self.skills),
            bare=_paths(self.bare),
            git_files=_paths(self.git_files),
            repositories=_paths(self.repositories),
            shut=tuple(self.shut),
            complete=complete,
        )


def search(roots: Collection[Path], names: frozenset[str]) -> Search:
    """Walk granted roots, never through links. `names` are the first parts of protected names."""
    findings = _Findings(names)
    pending = [os.fspath(root) for root in roots]
    while pending:
        pending += findings.take(pending.pop())
        if findings.left < 0:
            return findings.done(complete=False)
    # A root can be a door itself; no folder gives an entry for it.
    for root in roots:
        findings.take_door(os.fspath(root))
    return findings.done(complete=True)


def standing_above(roots: Iterable[Path]) -> tuple[tuple[Path, str], ...]:
    """Name what stands under a protected name in the folders above write roots: a link there may lead into one.

    A script could not make one, so what is absent does not matter; what can't be told does. This looks at the disk.
    """
    places = sorted({os.fspath(folder).rstrip("/") for root in roots for folder in root.parents})
    found = ((f"{place}/{name}", why) for place in places for name, why in _protected_names())
    return tuple((Path(text), why) for text, why in found if may_be(text))


@functools.cache
def _protected_names() -> tuple[tuple[str, str], ...]:
    """Return every protected name with its reason."""
    return tuple((line["name"].rstrip("/"), line["why"]) for line in resources.table("protected")["names"])


def _paths(folders: Iterable[str]) -> tuple[Path, ...]:
    """Give folders as paths, sorted."""
    return tuple(Path(folder) for folder in sorted(folders))


def _kind(path: str) -> str | None:
    """Say what a path is when it is neither a file, a folder nor a link. Raises OSError."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISSOCK(mode):
        return "a socket: whoever listens there is outside"
    if stat.S_ISFIFO(mode):
        return "a pipe: whoever holds its other end is outside"
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        return "a device"
    return None
