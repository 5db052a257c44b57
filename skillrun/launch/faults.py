"""Faults of the host and of the launcher before a run began, as errors with a name."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Final

from skillrun.errors import SkillrunError
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ETOOMANYREFS})


class LauncherError(SkillrunError):
    """The launcher could not be started, does not take a run, or was lost before one began."""


def explain(problem: OSError, scratch: Path) -> LauncherError | None:
    """Say what an error before the start came from; None when neither this host nor the launcher is the reason."""
    if problem.errno in _SHORT:
        message = f"this process is out of descriptors or memory: {problem.strerror}"
        return LauncherError(error("out-of-resources", message, help="close files, or raise `ulimit -n`"))
    return _gone(scratch)


def _gone(scratch: Path) -> LauncherError | None:
    """Say that the scratch folder is gone: with its launcher, which is the usual reason, or by somebody else's hand."""
    if os.path.lexists(scratch):
        return None
    message = f"the run had not begun when `{scratch}` was removed: its launcher died, or somebody cleared the folder"
    return LauncherError(error("launcher-gone", message, help="run it again"))


@contextlib.contextmanager
def named(scratch: Path) -> Iterator[None]:
    """Turn what `explain` can explain into a LauncherError, and what a vanished scratch folder brought about."""
    try:
        yield
    except SkillrunError as problem:
        said = None if isinstance(problem, LauncherError) else _gone(scratch)
        if said is None:
            raise
        raise said from problem
    except OSError as problem:
        said = explain(problem, scratch)
        if said is None:
            raise
        raise said from problem
