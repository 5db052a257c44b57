"""The folder that all scratch folders of a user lie in, so that one rule hides every run's from every other."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_TRIES = 10  # against another runner that removes the empty folder between two of our steps


def shared_root(temporary: Path) -> Path:
    """Return the folder of this user's launchers in a temporary folder; it need not be there."""
    return temporary / f"skillrun-{os.getuid()}"


def make_root(temporary: Path) -> str:
    """Make a launcher's own folder, mode 0700, in the user's shared one. Raises OSError.

    Somebody else may have taken the shared name in a folder that everybody writes: then the own folder
    is made beside it, and only its random name keeps it from other runs that may read the temporary folder.
    """
    shared = shared_root(temporary)
    for _ in range(_TRIES):
        made = _try(shared, temporary)
        if made is not None:
            return made
    return tempfile.mkdtemp(prefix="skillrun-", dir=temporary)


def _try(shared: Path, temporary: Path) -> str | None:
    """Make the own folder once; None when the shared one went away meanwhile."""
    try:
        # Not `exist_ok`: it raises where the folder that was there is gone a moment later.
        with contextlib.suppress(FileExistsError):
            shared.mkdir(mode=0o700)
        found = shared.lstat()
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
        return tempfile.mkdtemp(prefix="skillrun-", dir=shared if ours else temporary)
    except FileNotFoundError:
        if not temporary.is_dir():
            raise
        return None
