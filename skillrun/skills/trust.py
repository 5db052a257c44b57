"""Who else could change what lies at a path: asked of every folder that programs are taken from."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import sys
from typing import Final

_ADMIN_GROUP: Final = 80  # macOS: its members may become root, and Homebrew's folders are theirs to write


def distrust(path: str) -> str | None:
    """Say why a physical file or folder could be changed by somebody else; None when it could not.

    Others are all but root and the caller. The folders above count too: who can rename one of them
    puts another in its place. In a sticky folder (`/tmp`) nobody can rename what is somebody else's.
    """
    step = path
    while True:
        try:
            status = os.lstat(step)
        except OSError as wrong:
            return f"can't be looked at: {wrong.strerror}"
        reason = _changeable(status, itself=step == path)
        if reason is not None:
            return reason if step == path else f"lies in `{step}`, which is {reason}"
        if step == "/":
            return None
        step = step.rpartition("/")[0] or "/"


def _changeable(status: os.stat_result, *, itself: bool) -> str | None:
    """Say who else could change one entry of the file system.

    Whoever owns `/` is the system: inside a user namespace that is not 0 but the overflow user.
    """
    if status.st_uid not in (0, os.geteuid(), os.lstat("/").st_uid):
        return "owned by another user"
    sticky = bool(status.st_mode & stat.S_ISVTX) and not itself
    if status.st_mode & stat.S_IWOTH and not sticky:
        return "writable by everybody"
    if status.st_mode & stat.S_IWGRP and not sticky and not _own_group(status.st_gid):
        return "writable by a group"
    return None


def _own_group(gid: int) -> bool:
    """Whether a group has no member but root and the caller: `root`, or a group made for one user."""
    if gid == 0 or (sys.platform == "darwin" and gid == _ADMIN_GROUP):
        return True
    try:
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    return user.pw_gid == gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
