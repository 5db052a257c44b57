"""Quarantine: move what a run made out of the way of later runs, by descriptor, never through a link."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from skillrun.sandbox.walk import ClosedError, Walker

if TYPE_CHECKING:
    from pathlib import Path


def move_away(path: Path, quarantine: Path | None) -> Path | None:
    """Move a path into a fresh folder of the quarantine; None when it can't be moved.

    Its folder is opened part by part without following links, and the name is moved from there: a link
    that the script put in the way leads nowhere. Across file systems, and without a quarantine, it is
    renamed where it is.
    """
    target = quarantine and quarantine / os.urandom(8).hex()
    try:
        if target is not None:
            target.mkdir(mode=0o700, parents=True)
    except OSError:
        target = None
    with Walker() as walker:
        try:
            folder = walker.folder(str(path.parent))
        except ClosedError:
            return None
        if folder is None:
            return None
        try:
            return _rename(folder, path, target)
        except PermissionError:
            # The script may have taken the right to write from its own folder.
            return _again(folder, path, target)
        except OSError:
            return None


def _rename(folder: int, path: Path, target: Path | None) -> Path:
    """Rename into the quarantine, or beside itself where that is on another file system."""
    if target is not None:
        try:
            os.rename(path.name, target / path.name, src_dir_fd=folder)
        except PermissionError:
            raise
        except OSError:
            pass
        else:
            return target / path.name
    aside = f"{path.name}.quarantined-{os.urandom(4).hex()}"
    os.rename(path.name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    return path.with_name(aside)


def _again(folder: int, path: Path, target: Path | None) -> Path | None:
    """Give the folder its write bit back for the move."""
    try:
        opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    try:
        mode = os.fstat(opened).st_mode & 0o7777
        os.fchmod(opened, mode | 0o700)
        try:
            return _rename(folder, path, target)
        finally:
            os.fchmod(opened, mode)
    except OSError:
        return None
    finally:
        os.close(opened)
