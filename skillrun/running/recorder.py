"""Recorder: who writes down every run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from skillrun.errors import UsageError
from skillrun.permissions.capabilities import below
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skillrun.launch.result import Result
    from skillrun.running.call import Call


class Recorder(Protocol):
    """Writes down what came of every run, in a file that no script can change or read."""

    @property
    def path(self) -> Path:
        """The file, physical; it need not exist."""

    def open(self) -> None:
        """Make sure that the file can be written. Raises OSError."""

    def record(self, call: Call, ended: Result | BaseException) -> None:
        """Take one run: its result, or what was raised instead. Must not raise."""


def checked(recorder: Recorder, *, workspace: Path, roots: Iterable[Path]) -> Recorder:
    """Return a recorder that can write, outside the workspace and every root of skills. UsageError otherwise.

    A grant elsewhere can't reach it either, as it is hidden from every run; these folders are also written
    by programs that nobody confines.
    """
    for folder, what in ((workspace, "the workspace"), *((root, "a root of skills") for root in roots)):
        if recorder.path == folder or below(recorder.path, folder):
            message = f"the log `{recorder.path}` lies in {what}, where scripts work"
            raise UsageError(
                error("log-place", message, help="name a file elsewhere, or a bare name for the state folder")
            )
    try:
        recorder.open()
    except OSError as wrong:
        message = f"the log `{recorder.path}` can't be written: {wrong.strerror}"
        raise UsageError(error("log-place", message)) from None
    return recorder
