"""The file that a batch writes its answers to, and reads to see which calls have one already."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from typing import TYPE_CHECKING

from skillrun.errors import UsageError
from skillrun.problem import At, error
from skillrun.report import document
from skillrun.report.answers import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skillrun.report.shapes import Shape
    from skillrun.running.lines import Line


class AnswersFile:
    """Appends whole lines, and knows what was in the file before.

    `kept` says for each call that has an answer whether it was well; a call is its line's number and digest.
    """

    def __init__(self, descriptor: int, kept: dict[tuple[int, str], bool]) -> None:
        self._descriptor = descriptor
        self.kept = kept

    def has(self, line: Line) -> bool:
        """Whether a line of the calls has an answer already."""
        return (line.number, line.digest) in self.kept

    def write(self, shape: Shape) -> None:
        """Append one answer."""
        rest = memoryview(document.line(shape))
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


@contextlib.contextmanager
def opened(path: Path) -> Iterator[AnswersFile]:
    """Open a file of answers, made if it is not there, for this process alone.

    Half a line at its end, which a killed batch leaves, is cut off: that call is made again. UsageError for
    a file that holds anything else, or that another batch is writing.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as wrong:
        raise UsageError(
            error("batch-output", f"`{path}` can't be opened for answers: {wrong.strerror}")
        ) from None
    try:
        _lock(descriptor, path)
        yield AnswersFile(descriptor, _read(descriptor, path))
        with contextlib.suppress(OSError):  # a pipe or a device has nothing to sync
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        message = f"another batch is writing to `{path}`"
        raise UsageError(error("batch-output", message, help="give each shard a file of its own")) from None


def _read(descriptor: int, path: Path) -> dict[tuple[int, str], bool]:
    """Read the answers of earlier batches."""
    kept: dict[tuple[int, str], bool] = {}
    whole = 0
    with open(os.dup(descriptor), "rb") as file:  # noqa: PTH123 - a descriptor
        if not file.seekable():
            return kept
        file.seek(0)
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            try:
                key, well = _answer(line)
            except (ValueError, KeyError, TypeError, RecursionError):
                at = At(path=path, line=number)
                message = "this is no answer of a batch, so nothing is written to the file"
                raise UsageError(error("batch-output", message, at=at, help="name another file")) from None
            kept[key] = well
    os.ftruncate(descriptor, whole)
    return kept


def _answer(line: bytes) -> tuple[tuple[int, str], bool]:
    """Return which call a line answers, and whether it was well. Raises ValueError, KeyError, TypeError."""
    answer = json.loads(line)
    if answer["schema"] != SCHEMA:
        raise ValueError(answer["schema"])
    return (int(answer["line"]), str(answer["call"])), bool(answer["ok"])
