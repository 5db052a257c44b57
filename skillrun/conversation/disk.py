"""Disk: private files and folders of the state folder, and whether a file system can hold a write-ahead log."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import psutil

if TYPE_CHECKING:
    from pathlib import Path

# A write-ahead log needs memory that all of its users share, which these do not give (sqlite.org/wal, facts/agents B5 31).
_REMOTE: Final = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "virtiofs",
        "afs",
        "afpfs",
        "ceph",
        "glusterfs",
        "vboxsf",
        "webdav",
    }
)


def private_folder(folder: Path) -> None:
    """Make a folder that only its owner can enter. Raises OSError, also for one that is somebody else's."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is no folder of this user")
    if found.st_mode & 0o022:
        raise PermissionError(f"{folder} can be written by others")


def private_file(path: Path) -> None:
    """Make a file that only its owner can read. Raises OSError, also for a link and for somebody else's file."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    # By name, in a folder that nobody else can change: to close a descriptor of a file drops every lock that
    # this process has on it, and those are another store's on the same file (sqlite.org/howtocorrupt 2.2).
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
        raise PermissionError(f"{path} is no file of this user alone")
    if stat.S_IMODE(found.st_mode) != 0o600:  # noqa: PLR2004 - the mode above
        path.chmod(0o600)


def syncs_well(path: Path) -> bool:
    """Whether a file lies on a disk of this machine, as far as can be seen."""
    real = os.path.realpath(path)
    best, kind = "", ""
    for one in psutil.disk_partitions(all=True):
        top = one.mountpoint.rstrip("/") + "/"
        if real.startswith(top) and len(top) >= len(best):
            best, kind = top, one.fstype.lower()
    return kind not in _REMOTE and not kind.startswith("fuse.")
