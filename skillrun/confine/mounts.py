"""The mount calls of Linux 5.2 and later, by descriptor; no policy here.

mount_setattr changes only the bits it names, where a remount has to repeat flags that it can't know and
fails with EPERM when it leaves a locked one out (mount_namespaces(7)). So nothing here remounts.
"""

from __future__ import annotations

import ctypes
import os
import struct

from . import calls

_LIBC = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC, _MOVE_MOUNT_F_EMPTY_PATH = 1, os.O_CLOEXEC, 4
_MNT_DETACH = 2
RDONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8  # the same bits for mount(2) and for mount_setattr(2)
_RECURSIVE, _PRIVATE, _SLAVE = 0x4000, 1 << 18, 1 << 19


def mount(kind: str, where: str, flags: int, options: str = "") -> None:
    """Mount a new file system of a kind (`tmpfs`, `proc`, `devpts`)."""
    words = (kind.encode(), os.fsencode(where), kind.encode(), ctypes.c_ulong(flags), options.encode())
    calls.checked(_LIBC.mount(*words), f"mount {kind} {where}")


def propagate(*, private: bool) -> None:
    """Cut the whole tree off from the host: as a slave it still hears of new mounts, private it does not."""
    flags = _RECURSIVE | (_PRIVATE if private else _SLAVE)
    calls.checked(_LIBC.mount(None, b"/", None, ctypes.c_ulong(flags), None), "mount propagation of /")


def clone_tree(path: str, *, recursive: bool = True) -> int:
    """Clone what is mounted at and below a path; the clone is attached nowhere yet. Returns a descriptor."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | (_AT_RECURSIVE if recursive else 0)
    return calls.syscall(calls.OPEN_TREE, f"open_tree {path}", _AT_FDCWD, os.fsencode(path), flags)


def change(tree: int, attributes: int) -> None:
    """Set attributes on a cloned tree, recursively, and make it private, so that no later mount shows in it."""
    words = struct.pack("=QQQQ", attributes, 0, _PRIVATE, 0)
    flags = _AT_EMPTY_PATH | _AT_RECURSIVE
    calls.syscall(calls.MOUNT_SETATTR, "mount_setattr", tree, b"", flags, words, len(words))


def attach(tree: int, where: str) -> None:
    """Attach a cloned tree at a path and close its descriptor."""
    words = (tree, b"", _AT_FDCWD, os.fsencode(where), _MOVE_MOUNT_F_EMPTY_PATH)
    try:
        calls.syscall(calls.MOVE_MOUNT, f"move_mount {where}", *words)
    finally:
        os.close(tree)


def enter_root() -> None:
    """Make the current folder the root and forget the old one; then nothing can be added to the root."""
    calls.syscall(calls.PIVOT_ROOT, "pivot_root", b".", b".")
    calls.checked(_LIBC.umount2(b".", _MNT_DETACH), "umount2 of the old root")
    os.chdir("/")
    seal("/")


def seal(path: str) -> None:
    """Make the mount at a path read-only, but none below it."""
    words = struct.pack("=QQQQ", RDONLY | NOSUID, 0, 0, 0)
    calls.syscall(calls.MOUNT_SETATTR, f"seal {path}", _AT_FDCWD, os.fsencode(path), 0, words, len(words))
