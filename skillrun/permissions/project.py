"""Project files: which skillrun.yaml files a workspace lies under, from the outermost repository's root down."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from skillrun.permissions.source import others_can_write

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FILE_NAME: Final = "skillrun.yaml"


def repository_root(workspace: Path) -> Path | None:
    """Return the nearest folder at or above a physical workspace that holds `.git`, or None.

    A folder that others can write, such as /tmp, is no repository's root: anybody could put a `.git`
    and a skillrun.yaml there and so speak to every workspace below.
    """
    for folder in (workspace, *workspace.parents):
        try:
            git, own = os.lstat(folder / ".git"), os.lstat(folder)
        except OSError:
            continue
        known = git.st_uid in {0, os.geteuid()} and own.st_uid in {0, os.geteuid()}
        return folder if known and not others_can_write(own) else None
    return None


def project_root(workspace: Path) -> Path:
    """Return the outermost folder at or above a physical workspace that holds a `.git` of ours, else the workspace.

    Not the nearest: a script may make a `.git` where it can write, and what limits it further up would not be read any more.
    Nor does it matter here who can write in the folder, which its owner, and so a script, can change.
    """
    return next(
        (folder for folder in (*reversed(workspace.parents), workspace) if _has_git(folder)), workspace
    )


def _has_git(folder: Path) -> bool:
    """Tell whether a folder holds a `.git` of ours, or may do so where that can't be told."""
    try:
        return os.lstat(folder / ".git").st_uid in {0, os.geteuid()}
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def project_files(workspace: Path, *, but: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Return the skillrun.yaml files that are there, the outermost first; a link, or what can't be told, is judged when read.

    `but` are files that somebody already speaks with, such as the one of `--ceiling`. In a folder that others can write
    one of theirs says nothing: anybody could speak to every workspace below /tmp.
    """
    top = project_root(workspace)
    folders = [folder for folder in (workspace, *workspace.parents) if folder == top or top in folder.parents]
    used = {path.resolve() for path in but}
    files = [folder / FILE_NAME for folder in reversed(folders)]
    return tuple(file for file in files if _speaks(file, used))


def _speaks(file: Path, used: set[Path]) -> bool:
    """Tell whether a file is there and nobody's yet. One in a folder that a script has closed must not look absent."""
    try:
        found = os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    if found.st_uid not in {0, os.geteuid()} and others_can_write(os.lstat(file.parent)):
        return False
    return stat.S_ISLNK(found.st_mode) or file.resolve() not in used
