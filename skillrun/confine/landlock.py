"""Landlock: build a rule set from a plan and restrict the calling thread."""

from __future__ import annotations

import os
import stat
import struct

from . import calls

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from typing import Any

# Rights that exist for files that are not folders; a rule on a file may name no other (landlock(7)).
FILE_RIGHTS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15  # execute, write, read, truncate, ioctl_dev
_RULE_PATH_BENEATH = 1
_LOG_NEW_EXEC_ON = 1 << 1  # LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON, from ABI 7 on
ANY = (0, 0)  # the identity of a shipped system path: whatever is there, or nothing


class ChangedError(Exception):
    """A path is not what it was when the run was planned."""


def ruleset(base: dict[str, Any]) -> int:
    """Make a rule set with the rules that do not depend on a run; return its descriptor.

    `base`: `masks`, the handled rights for files, network and scope; `system`: [path, rights]..., each
    left out where it is absent.
    """
    masks = base["masks"]
    # Older kernels take a shorter struct and refuse trailing bytes that are not zero (E2BIG).
    size = 24 if masks[2] else 16 if masks[1] else 8
    attributes = struct.pack("=QQQ", *masks)[:size]
    made = calls.syscall(calls.LANDLOCK_CREATE, "landlock_create_ruleset", attributes, size, 0)
    for path, rights in base["system"]:
        _add(made, path, rights, ANY)
    return made


def restrict(made: int, rules: list[list[Any]], *, traced: bool) -> None:
    """Add a run's own rules, [path, rights, device, inode]..., and restrict this thread for good.

    Children inherit it, and nothing lifts it (landlock(7)). `traced` has denials of what is executed logged.
    """
    for path, rights, device, inode in rules:
        _add(made, path, rights, (device, inode))
    calls.syscall(calls.LANDLOCK_RESTRICT, "landlock_restrict_self", made, _LOG_NEW_EXEC_ON if traced else 0)
    os.close(made)


def _add(ruleset: int, path: str, rights: int, identity: tuple[int, int]) -> None:
    """Add one rule, tied to the inode that was planned rather than to whatever the name means now."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        if identity == ANY:
            return
        raise
    try:
        found = os.fstat(descriptor)
        if identity not in {ANY, (found.st_dev, found.st_ino)}:
            raise ChangedError(f"{path} was replaced after the run was planned")
        if not stat.S_ISDIR(found.st_mode):
            rights &= FILE_RIGHTS
        rule = struct.pack("=Qi", rights, descriptor)
        call = f"landlock_add_rule {path}"
        calls.syscall(calls.LANDLOCK_ADD, call, ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)
