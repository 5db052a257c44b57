"""Discovery: walk one root and find every skill in it."""

from __future__ import annotations

import enum
import itertools
import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from skillrun.problem import At, Problem, error, note, warning
from skillrun.skills.catalog import Catalog, Listed, merge
from skillrun.skills.disk import home_or_above, is_inside
from skillrun.skills.script_walk import ENTRY_LIMIT
from skillrun.skills.skill import MANIFEST, load_skill, misnamed, read_skill

if TYPE_CHECKING:
    from skillrun.skills.model import Skill

__all__ = [
    "Catalog",
    "Found",
    "Listed",
    "RootStatus",
    "discover",
    "merge",
    "read_skill",
]  # one door to the room's finding

DEPTH: Final = 6
"""Levels below a root that are looked at (DESIGN 6)."""
FOLDER_LIMIT: Final = 20_000
"""Folders of a root (DESIGN 6). A skill with its usual three folders comes on top: it is what was looked for."""
_SKILL_FOLDERS: Final = 4
_SKIPPED: Final = frozenset({".git", "node_modules", ".venv", "__pycache__"})


class RootStatus(enum.Enum):
    """How the walk of a root ended."""

    OK = "ok"
    MISSING = "missing"
    NOT_A_FOLDER = "not a folder"
    UNREADABLE = "unreadable"
    INCOMPLETE = "incomplete"  # the limit of folders was reached


@dataclass(frozen=True, slots=True)
class Found:
    """What the walk of one root found. `own` says that it is an operator's root and not a project's.

    The problems are about the root and its folders; a skill's own are in the skill. `deeper` are the folders
    at the last level that have folders of their own, which were not looked at.
    """

    root: Path
    status: RootStatus
    own: bool
    skills: tuple[Skill, ...]
    problems: tuple[Problem, ...]
    deeper: tuple[Path, ...] = ()


def discover(root: Path, *, own: bool, home: Path | None, repository: Path | None = None) -> Found:
    """Find the skills below a root, in byte order of their paths. Raises nothing for what is on disk.

    `own` roots may link anywhere but to a home folder or above; a project's only inside `repository`,
    or inside the root where there is none.
    """
    try:
        physical = os.path.realpath(root, strict=True)
        os.listdir(physical)  # noqa: PTH208 - only asked whether it can be listed
    except (OSError, ValueError) as wrong:
        status, problem = _no_root(root, wrong)
        return Found(root, status, own, (), (problem,))
    real_home = Path(os.path.realpath(home)) if home is not None else None
    walk = _Walk(root, own=own, home=real_home, repository=repository)
    bound = None if own else os.path.realpath(repository or physical)
    walk.run(physical, bound)
    if walk.linked:  # what came through links was found last
        walk.skills.sort(key=lambda skill: [os.fsencode(part) for part in skill.found.parts])
    return Found(
        root,
        RootStatus.INCOMPLETE if walk.stopped else RootStatus.OK,
        own,
        tuple(walk.skills),
        tuple(walk.problems),
        tuple(walk.deeper),
    )


class _Folder(NamedTuple):
    """A folder to look at: physical path, the path it was found by, and what applies below it."""

    physical: str
    found: str
    depth: int
    bound: str | None  # where links below it may lead; None: anywhere but home
    outer: str | None  # the skill it lies in
    entries: list[os.DirEntry[str]] | None = None  # what lies in it, where it has been listed


class _Walk:
    """One walk. Real folders come first, links after them, so that a link can't use up the limit of the rest."""

    def __init__(self, root: Path, *, own: bool, home: Path | None, repository: Path | None) -> None:
        self.root = root
        self.own = own
        self.home = home
        self.repository = repository
        self.seen: set[tuple[int, int]] = set()
        self.links: deque[_Folder] = deque()
        self.skills: list[Skill] = []
        self.linked = False
        self.problems: list[Problem] = []
        self.folders = 0
        self.stopped = False
        self.deeper: list[Path] = []

    def run(self, physical: str, bound: str | None) -> None:
        self.descend(_Folder(physical, os.fspath(self.root), 0, bound, None))
        while self.links and not self.stopped:
            self.follow(self.links.popleft())

    def descend(self, top: _Folder) -> None:
        """Look at a folder and all real folders below it, in byte order."""
        stack = [top]
        while stack:
            if self.folders >= FOLDER_LIMIT + _SKILL_FOLDERS * len(self.skills):
                self.stopped = True
                message = f"there are more than {FOLDER_LIMIT} folders here; the rest was not looked at"
                self.problems.append(
                    error("root-too-large", message, at=At(self.root), help="name a folder further down")
                )
                return
            self.folders += 1
            folder = stack.pop()
            try:
                stack.extend(reversed(self.look(folder)))
            except OSError as wrong:
                message = f"the folder can't be read: {wrong.strerror}"
                self.problems.append(error("folder-unreadable", message, at=At(Path(folder.found))))

    def look(self, folder: _Folder) -> list[_Folder]:
        """Look at one folder: take its skill if it is one, queue its links, return its folders. Raises OSError."""
        entries = folder.entries if folder.entries is not None else self.listing(folder.physical)
        names = [entry.name for entry in entries]
        outer = folder.outer
        scripts: list[os.DirEntry[str]] | None = None
        if MANIFEST in names:
            outer = folder.found
            scripts = self.scripts(folder, entries)
            self.take(folder, scripts)
        elif near := [name for name in names if name.lower() == MANIFEST.lower()]:
            self.problems.append(misnamed(Path(folder.found), min(near)))
        if folder.depth >= DEPTH:
            if any(entry.name not in _SKIPPED and entry.is_dir(follow_symlinks=False) for entry in entries):
                self.deeper.append(Path(folder.found))
            return []
        if len(entries) > 1:
            entries.sort(key=_name if "".join(names).isascii() else _name_bytes)
        prefix = folder.found if folder.found.endswith("/") else f"{folder.found}/"
        folders = []
        for entry in entries:
            name = entry.name
            if name in _SKIPPED:
                continue
            step = _Folder(entry.path, prefix + name, folder.depth + 1, folder.bound, outer)
            if entry.is_dir(follow_symlinks=False):
                folders.append(step._replace(entries=scripts) if name == "scripts" and scripts else step)
            elif entry.is_symlink() and name != MANIFEST:
                self.links.append(step)
        return folders

    def listing(self, physical: str) -> list[os.DirEntry[str]]:
        """List a folder, each once, without the files: nobody asks for those, and there may be a million."""
        if not self.first_time(physical):
            return []
        with os.scandir(physical) as entries:
            return [
                entry
                for entry in entries
                if not entry.is_file(follow_symlinks=False) or entry.name.lower() == MANIFEST.lower()
            ]

    def scripts(self, folder: _Folder, entries: list[os.DirEntry[str]]) -> list[os.DirEntry[str]] | None:
        """List a skill's `scripts` with its files, once for both: its scripts, and skills further down.

        None where that fails, is left to a link, or lies too deep: whoever looks next will say.
        """
        top = next((entry for entry in entries if entry.name == "scripts"), None)
        if top is None:
            return []
        if folder.depth >= DEPTH or not top.is_dir(follow_symlinks=False):
            return None
        try:
            if not self.first_time(top.path):
                return None
            with os.scandir(top.path) as listing:
                return list(itertools.islice(listing, ENTRY_LIMIT + 1))
        except OSError:
            return None

    def first_time(self, physical: str) -> bool:
        status = os.lstat(physical)
        identity = (status.st_dev, status.st_ino)
        known = identity in self.seen
        self.seen.add(identity)
        return not known

    def follow(self, link: _Folder) -> None:
        """Go through a link to a folder, once, where the rule lets it."""
        at = At(Path(link.found))
        try:
            target = os.path.realpath(link.physical, strict=True)
            if not os.path.isdir(target):  # noqa: PTH112 - a string, from realpath
                return
            # Inside a skill links are its own business (data, libraries), unless they bring in another skill.
            if link.outer is not None and not os.path.lexists(f"{target}/{MANIFEST}"):
                return
        except OSError:
            if link.outer is None:
                self.problems.append(
                    warning("skill-link-dead", "the link leads nowhere", at=at, help="remove it")
                )
            return
        if home_or_above(target, self.home):
            message = "the link leads to a home folder or above one and is not followed"
            self.problems.append(
                warning("skill-link-home", message, at=at, help="link the skill's own folder")
            )
        elif link.bound is not None and not is_inside(target, link.bound):
            where = "the root" if self.repository is None else "the repository"
            message = (
                f"the link leads out of {'the linked folder' if self.own else where} and is not followed"
            )
            self.problems.append(
                warning("skill-link-out", message, at=at, help="copy the skill, or name its folder as a root")
            )
        else:
            # What lies behind an operator's link may be a clone: its own links get no further than itself.
            bound = target if link.bound is None else link.bound
            self.linked = True
            self.descend(_Folder(target, link.found, link.depth, bound, link.outer))

    def take(self, folder: _Folder, scripts: list[os.DirEntry[str]] | None) -> None:
        """Read the skill of a folder that has a SKILL.md."""
        found = Path(folder.found)
        skill = load_skill(
            folder.physical,
            found=found,
            root=self.root,
            repository=self.repository,
            home=self.home,
            scripts=scripts,
        )
        if folder.outer is not None:
            message = f"the skill lies inside another skill, `{folder.outer}`; both are skills of their own"
            self.problems.append(note("skill-nested", message, at=At(found / MANIFEST)))
        self.skills.append(skill)


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _name_bytes(entry: os.DirEntry[str]) -> bytes:
    return os.fsencode(entry.name)


def _no_root(root: Path, wrong: OSError | ValueError) -> tuple[RootStatus, Problem]:
    if isinstance(wrong, FileNotFoundError):
        message = f"the root `{root}` does not exist"
        return RootStatus.MISSING, error(
            "root-missing", message, at=At(root), help="name a folder that has skills in it"
        )
    if isinstance(wrong, NotADirectoryError):
        message = f"the root `{root}` is not a folder"
        return RootStatus.NOT_A_FOLDER, error("root-not-a-folder", message, at=At(root))
    reason = wrong.strerror if isinstance(wrong, OSError) else "it is not a path"
    return RootStatus.UNREADABLE, error(
        "root-unreadable", f"the root `{root}` can't be listed: {reason}", at=At(root)
    )
