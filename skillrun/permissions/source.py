"""Source: a configuration file from disk to its tree, with the checks of who could have written it."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from skillrun.errors import ConfigError
from skillrun.problem import At, error
from skillrun.skills.strict_yaml import SIZE_LIMIT, YamlProblem, decode_text, read_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.skills.node import Mapping

_RULE = "ceiling"


def read_source(path: Path, *, project: bool = False) -> Mapping:
    """Read one skillrun.yaml. ConfigError when it can't be read, is not strict YAML, or is another's to write.

    A `project` file came with a clone: it may not be a link either, since a link would let the clone
    choose a file elsewhere. The operator's own file may be one (dotfile collections link it).
    """
    data = _read(path, project=project)
    try:
        return read_yaml(decode_text(data, path=path, rule=_RULE), path=path, rule=_RULE)
    except YamlProblem as wrong:
        raise ConfigError(*wrong.problems) from None


def _read(path: Path, *, project: bool) -> bytes:
    # One descriptor for the check and the reading, so that nobody can swap the file between them.
    # Without waiting: a FIFO of that name must not hang the run.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_NOFOLLOW if project else 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as failure:
        if failure.errno == errno.ELOOP and project:
            raise _wrong(path, "link", f"`{path}` is a link", "put the file itself there") from None
        reason = failure.strerror or "unknown reason"
        raise _wrong(
            path, "unreadable", f"`{path}` cannot be read: {reason}", "check the name and its modes"
        ) from None
    try:
        _check(path, os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(SIZE_LIMIT + 1)
    finally:
        os.close(descriptor)


def _check(path: Path, seen: os.stat_result) -> None:
    if not stat.S_ISREG(seen.st_mode):
        raise _wrong(path, "unreadable", f"`{path}` is not a regular file", "put a file there")
    if seen.st_uid not in {0, os.geteuid()}:
        raise _wrong(
            path, "owner", f"`{path}` belongs to another user (uid {seen.st_uid})", "own it, or remove it"
        )
    if others_can_write(seen):
        raise _wrong(path, "owner", f"`{path}` can be written by others", f"run `chmod go-w {path}`")


def others_can_write(seen: os.stat_result) -> bool:
    """Whether somebody else could have written this. The user's own group counts as the user (umask 002)."""
    group = bool(seen.st_mode & stat.S_IWGRP) and seen.st_gid not in {0, os.getegid()}
    return group or bool(seen.st_mode & stat.S_IWOTH)


def _wrong(path: Path, rule: str, message: str, advice: str) -> ConfigError:
    return ConfigError(error(f"{_RULE}-{rule}", message, at=At(path), help=advice))
