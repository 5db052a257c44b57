"""Quarantine: move what a run made out of the way of later runs, by descriptor, never through a link."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from skillrun.confine.trees import permit
from skillrun.permissions.closed import ClosedError
from skillrun.sandbox.walk import Walker

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
    moved = None
    with Walker() as walker, contextlib.suppress(ClosedError, OSError):
        folder = walker.folder(str(path.parent))
        if folder is not None:
            try:
                moved = _rename(folder, path, target)
            except PermissionError:
                # The script may have taken the rights for that. A folder that comes to lie in another one is written
                # itself (rename(2), EACCES); a file is not.
                regain(path.parent, walker)
                with contextlib.suppress(NotADirectoryError):
                    regain(path, walker)
                moved = _rename(folder, path, target)
    if target is not None and (moved is None or moved.parent != target):
        with contextlib.suppress(OSError):
            target.rmdir()
    return moved


def regain(folder: Path, walker: Walker) -> None:
    """Give the owner of a folder its rights back, which a run may have taken. Raises ClosedError or OSError."""
    above = walker.folder(str(folder.parent))
    if above is not None:
        permit(folder.name or ".", above)


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
