"""Remove a folder tree that a hostile script may have shaped."""

from __future__ import annotations

import os
import stat

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ROUNDS = 1_000_000  # folders entered at most: a bound on work, far above what a quota allows


def remove(root: str) -> bool:
    """Remove `root` and all below it; return whether it is gone.

    Links are unlinked, never followed. Only one descriptor is open at a time and nothing recurses, so
    depth is no limit: a folder that holds folders hands them up to the root, and is then empty.
    """
    try:
        top = os.open(root, _OPEN)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        serial = 0
        before: list[str] | None = None
        for _ in range(_ROUNDS):
            folders = _clear(top)
            if not folders or folders == before:
                break
            before = folders
            for name in folders:
                serial = _flatten(top, name, serial)
    finally:
        os.close(top)
    try:
        os.rmdir(root)
    except OSError:
        return False
    return True


def _clear(folder: int) -> list[str]:
    """Unlink everything in an opened folder that is not a folder; return the names of the folders left."""
    folders = []
    with os.scandir(folder) as entries:
        names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in names:
        try:
            if is_folder:
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
        except OSError:
            if is_folder:
                folders.append(name)
    return folders


def _flatten(top: int, name: str, serial: int) -> int:
    """Empty one folder below the root: unlink its files, move its folders up to the root, remove it."""
    try:
        folder = os.open(name, _OPEN, dir_fd=top)
    except OSError:
        try:
            os.chmod(name, stat.S_IRWXU, dir_fd=top)
            folder = os.open(name, _OPEN, dir_fd=top)
        except OSError:
            return serial
    try:
        os.fchmod(folder, stat.S_IRWXU)
        for inner in _clear(folder):
            serial += 1
            try:
                os.chmod(inner, stat.S_IRWXU, dir_fd=folder)  # moving a folder writes its `..`
                os.rename(inner, f".skillrun-{serial}", src_dir_fd=folder, dst_dir_fd=top)
            except OSError:
                continue
        os.rmdir(name, dir_fd=top)
    except OSError:
        pass
    finally:
        os.close(folder)
    return serial
