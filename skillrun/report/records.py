"""Records: what came of every run, a line of JSON each, with arguments and secrets taken out."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from skillrun import __version__
from skillrun.errors import SkillrunError
from skillrun.launch.result import Result, Termination
from skillrun.problem import Problem, error, warning
from skillrun.redact import MARK, Redactor
from skillrun.report import document, shapes
from skillrun.report.receipt import no_result, receipt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skillrun.running.call import Call

LARGEST: Final = 10 << 20
"""Bytes from which on a file is put aside as `.1`."""
KEPT: Final = 3
"""Files that were put aside and are kept, `.1` the latest."""
_TRIES: Final = 10


@dataclass(slots=True)
class Records:
    """A file of records, for any number of threads and processes; implements `Recorder`.

    The `state` folder is made when the file lies in it; any other folder has to be there.

    What could not be written is in `problems`, one for each run; a run is never lost for its record.
    """

    path: Path
    redactor: Redactor
    state: Path | None = None
    problems: list[Problem] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self) -> None:
        """Make sure that the file can be written. Raises OSError."""
        if self.state is not None and self.path.parent == self.state.resolve():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(_opened(self.path))

    def record(self, call: Call, ended: Result | BaseException) -> None:
        """Append one record."""
        line = document.line(self.redactor.value(shaped(call, ended)))
        try:
            with self._lock:
                self._append(line)
        except OSError as problem:
            message = f"the run could not be written down in `{self.path}`: {problem.strerror}"
            self.problems.append(warning("record-failed", message))

    def _append(self, line: bytes) -> None:
        """Write a line whole, in the file that bears the name when it is written."""
        for _ in range(_TRIES):
            descriptor = _opened(self.path)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if not self._current(descriptor):
                    continue  # another process has put it aside while we waited
                if os.fstat(descriptor).st_size + len(line) > LARGEST and os.fstat(descriptor).st_size:
                    self._put_aside()
                    continue
                os.write(descriptor, line)
                return
            finally:
                os.close(descriptor)
        raise OSError(11, "other processes keep putting it aside")

    def _current(self, descriptor: int) -> bool:
        """Whether an opened file still bears the name."""
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(descriptor), self.path.lstat())
        return False

    def _put_aside(self) -> None:
        """Rename the files, the oldest away first. The lock of the current one is held."""
        for number in range(KEPT - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                _aside(self.path, number).replace(_aside(self.path, number + 1))
        self.path.replace(_aside(self.path, 1))


def shaped(call: Call, ended: Result | BaseException) -> shapes.Shape:
    """Shape one record: a receipt without the texts that a script read and wrote, and when it was."""
    if isinstance(ended, Result):
        found = receipt(ended)
        own = len(found["argv"]) - len(call.arguments)
    else:
        problems = ended.problems if isinstance(ended, SkillrunError) else (_stopped(ended),)
        refused = isinstance(ended, SkillrunError)
        found = no_result(Termination.REFUSED if refused else Termination.CANCELLED, problems, call.arguments)
        own = 0
    argv = [*found["argv"][:own], *(MARK for _ in call.arguments)]
    streams = {name: _counts(found[name]) for name in ("stdout", "stderr")}
    now = dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds")
    return {
        **shapes.schema("record"),
        "time": now,
        "skillrun": __version__,
        "pid": os.getpid(),
        **{name: value for name, value in found.items() if name not in {"schema", "json"}},
        "argv": argv,
        **streams,
    }


def last(path: Path, *, skill: str | None = None) -> shapes.Shape | None:
    """Return the latest record, of one skill if a key is given; None where there is none.

    A line that is none, which a full disk leaves, is passed over.
    """
    for number in range(KEPT + 1):
        found: shapes.Shape | None = None
        for record in _read(path if number == 0 else _aside(path, number)):
            if skill is None or (record.get("skill") or {}).get("key") == skill:
                found = record
        if found is not None:
            return found
    return None


def _read(path: Path) -> Iterator[Any]:
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        for line in file:
            with contextlib.suppress(ValueError, RecursionError, TypeError):
                record = json.loads(line)
                if isinstance(record, dict) and record.get("schema") == shapes.schema("record")["schema"]:
                    yield record


def _opened(path: Path) -> int:
    # Not through a link: where others may write the folder, it would lead the record elsewhere.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _counts(stream: shapes.Shape | None) -> shapes.Shape | None:
    return None if stream is None else {"bytes": stream["bytes"], "truncated": stream["truncated"]}


def _stopped(ended: BaseException) -> Problem:
    return error(
        "stopped", f"the call ended with {type(ended).__name__}, and everything of the run was ended"
    )
