"""What git runs or obeys in a granted folder because some configuration names it.

`core.hooksPath` may name any folder, `include.path` any file, and a filter, a monitor or an alias any
program, by a path in the work tree. Whoever may change one of these runs commands at the next `git
status` (law 8), so they are protected like `.git/hooks`.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun import resources
from skillrun.permissions.capabilities import below
from skillrun.sandbox.git_config import read, settings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from skillrun.sandbox.git_config import Setting
    from skillrun.sandbox.search import Search

_MOST_DEPTH: Final = 10  # of includes, as in git (MAX_INCLUDE_DEPTH in its config.c)
_MOST_FILES: Final = 200  # of one repository's configuration
_WORDS = re.compile(r"[\s\"'`$(){};|&<>=!]+")
_GITDIR: Final = "gitdir:"


@dataclass(frozen=True, slots=True)
class _Repository:
    """A repository: where git starts what it runs, and the files it takes its settings from."""

    top: Path
    files: tuple[Path, ...]


def obeyed(writes: Collection[Path], found: Search, *, home: Path | None) -> tuple[tuple[Path, str], ...]:
    """Name what lies at, in or above the write roots and is named by a setting of git's, with the reason.

    Looked at are the repositories found in the granted folders and those above a write root, with the
    user's and the machine's own settings: `core.hooksPath = .hooks` there counts in every repository.
    """
    if not writes:
        return ()
    own = [Path("/etc/gitconfig")]
    own += [] if home is None else [home / ".gitconfig", home / ".config/git/config"]
    named: dict[Path, str] = {}
    for repository in _repositories(writes, found):
        for path, reason in _named(repository, tuple(own), home):
            if any(_matters(path, root) for root in writes):
                named.setdefault(path, reason)
    return tuple(named.items())


def _matters(path: Path, root: Path) -> bool:
    """Tell whether a path and a write root have anything in common."""
    return path == root or below(path, root) or below(root, path)


def _repositories(writes: Collection[Path], found: Search) -> Iterator[_Repository]:
    """Give the repositories whose settings matter."""
    above = {folder / ".git" for root in writes for folder in (root, *root.parents)}
    for git in sorted({*found.repositories, *found.git_files, *above}):
        folder = git if git.is_dir() else _leads_to(git)
        if folder is not None:
            common = folder / _line(folder / "commondir")
            files = (common / "config", folder / "config.worktree", common / "config.worktree")
            yield _Repository(git.parent, files)
    for folder in found.bare:
        yield _Repository(folder, (folder / "config",))


def _leads_to(git: Path) -> Path | None:
    """Return the folder that a `.git` file names, as in linked work trees and submodules."""
    line = _line(git)
    return git.parent / line.removeprefix(_GITDIR).strip() if line.startswith(_GITDIR) else None


def _line(path: Path) -> str:
    """Return the first line of a file, empty where there is none."""
    return ((read(path, follow=True) or "").splitlines() or [""])[0].strip()


def _named(repository: _Repository, own: tuple[Path, ...], home: Path | None) -> Iterator[tuple[Path, str]]:
    """Give what the settings of a repository name, and the files that they come from."""
    table = _table()
    pending = [(path, 0) for path in (*own, *repository.files)]
    seen: set[Path] = set()
    while pending and len(seen) < _MOST_FILES:
        file, depth = pending.pop()
        if file in seen:
            continue
        seen.add(file)
        for setting in settings(read(file, follow=True) or ""):
            use = table.get(setting.name, table.get(setting.section))
            if use == "include" and depth < _MOST_DEPTH:
                included = _path(setting.value, file.parent, home)
                pending.append((included, depth + 1))
                yield from _both(included, f"the settings of git in `{file}` include it")
            elif use == "path":
                yield from _both(
                    _path(setting.value, repository.top, home), f"`{setting.name}` in `{file}` names it"
                )
            elif use == "command":
                for path in _in_command(setting, repository.top):
                    yield from _both(path, f"`{setting.name}` in `{file}` runs it")


@functools.cache
def _table() -> Mapping[str, str]:
    """Return what a setting's value is, by `section.key` or by section: `include`, `path`, `command`, `other`."""
    protected = resources.table("protected")
    table = dict.fromkeys(protected["git_command_sections"], "command")
    table.update((line["key"], line.get("value", "command")) for line in protected["git_commands"])
    return table


def _path(value: str, base: Path, home: Path | None) -> Path:
    """Return the path that a value means; `~user` is somebody else's and stays as it is."""
    if value.startswith("~/") and home is not None:
        return home / value[2:]
    return base / value


def _in_command(setting: Setting, top: Path) -> Iterator[Path]:
    """Give the files and folders in the work tree that a command line names.

    A word without a slash is a program's name or an option, unless a file is called so; a folder above
    the work tree is where a command goes, and not what it runs. An alias is a command only after `!`.
    """
    if setting.section == "alias" and not setting.value.startswith("!"):
        return
    for word in _WORDS.split(setting.value):
        path = Path(os.path.normpath(top / word)) if word else top
        if path.is_file() or ("/" in word and below(path, top) and path.is_dir()):
            yield path


def _both(path: Path, reason: str) -> Iterator[tuple[Path, str]]:
    """Give a path as it is spelled and, where links lead elsewhere, as it is."""
    spelled, real = Path(os.path.normpath(path)), Path(os.path.realpath(path))
    yield spelled, reason
    if real != spelled:
        yield real, reason
