"""Remove a folder tree that a hostile script may have shaped."""

from __future__ import annotations

import os
import stat
import sys

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ROUNDS = 1_000_000  # folders entered at most: a bound on work, far above what a quota allows


def remove_root(root: str) -> bool:
    """Remove a launcher's folder, and the folder of all of this user's launchers where it is empty then.

    Return whether the launcher's folder is gone: somebody may have put something into it meanwhile.
    """
    gone = remove(root)
    shared = os.path.dirname(root)
    if os.path.basename(shared) == f"skillrun-{os.getuid()}":
        try:
            os.rmdir(shared)
        except OSError:
            pass
    return gone


def remove(root: str) -> bool:
    """Remove `root` and all below it; return whether it is gone.

    Links are unlinked, never followed. Only one descriptor is open at a time and nothing recurses, so
    depth is no limit: a folder that holds folders hands them up to the root, and is then empty.
    """
    try:
        top = _enter(root, None)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        _empty(top)
        os.rmdir(root)
    except OSError:  # no descriptor is free, for one
        return False
    finally:
        os.close(top)
    return True


def _empty(top: int) -> None:
    """Remove all that is in an opened folder."""
    before: list[str] | None = None
    for _ in range(_ROUNDS):
        folders = _clear(top)
        if not folders or folders == before:
            return
        before = folders
        for name in folders:
            _flatten(top, name)


def _enter(name: str, above: int | None) -> int:
    """Open a folder for good, with its permission bits given back where they are missing."""
    try:
        folder = os.open(name, _OPEN, dir_fd=above)
    except PermissionError:
        permit(name, above)
        folder = os.open(name, _OPEN, dir_fd=above)
    try:
        os.fchmod(folder, stat.S_IRWXU)
    except OSError:
        os.close(folder)
        raise
    return folder


def permit(name: str, above: int | None) -> None:
    """Give a folder its owner's permission bits back; raises OSError when it is none, or not ours."""
    if sys.platform != "linux":
        mode = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
        os.chmod(name, stat.S_IMODE(mode) | stat.S_IRWXU, dir_fd=above, follow_symlinks=False)
        return
    # chmod(2) follows links and has no flag against it; the way through /proc leads to what was opened.
    held = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        os.chmod(f"/proc/self/fd/{held}", stat.S_IMODE(os.fstat(held).st_mode) | stat.S_IRWXU)
    finally:
        os.close(held)


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


def _flatten(top: int, name: str) -> None:
    """Empty one folder below the root: unlink its files, move its folders up to the root, remove it.

    Their names there are random: one that could be foreseen would be taken already, by a script that wants to stay.
    """
    try:
        folder = _enter(name, top)
    except OSError:
        return
    try:
        for inner in _clear(folder):
            try:
                _raise(inner, folder, f".skillrun-{os.urandom(8).hex()}", top)
            except OSError:
                continue
        os.rmdir(name, dir_fd=top)
    except OSError:
        pass
    finally:
        os.close(folder)


def _raise(name: str, folder: int, new: str, top: int) -> None:
    """Move a folder up to the root, which writes its `..` and so asks for permission in it."""
    try:
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)
    except PermissionError:
        permit(name, folder)
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)
