"""Watched: a disk that keeps what it was asked and what it answered, to tell whether it would answer the same again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from skillrun.permissions.resolve import HostDisk

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from skillrun.permissions.resolve import Disk

T = TypeVar("T")
_Answer: TypeAlias = tuple[object, ...]


@dataclass(slots=True)
class Watched:
    """Asks a disk, and keeps of each answer what a decision can depend on.

    Whoever reads of the disk only what this one told comes to the same end where it is `unchanged`.
    """

    disk: Disk = field(default_factory=HostDisk)
    torn: bool = False  # one question had two answers: what was decided by both was decided about a disk that never was
    _seen: dict[tuple[str, str], _Answer] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the questions."""
        return len(self._seen)

    def lstat(self, path: str) -> os.stat_result:
        """As `os.lstat`."""
        return self._ask("lstat", self.disk.lstat, path)

    def readlink(self, path: str) -> str:
        """As `os.readlink`."""
        return self._ask("readlink", self.disk.readlink, path)

    def listdir(self, path: str) -> list[str]:
        """As `os.listdir`."""
        return self._ask("listdir", self.disk.listdir, path)

    def saw(self, path: str) -> bool:
        """Whether it was asked what lies at a path."""
        return ("lstat", path) in self._seen

    def unchanged(self) -> bool:
        """Ask everything once more, and tell whether every answer is what it was; never of a torn one."""
        return not self.torn and all(
            _answer(getattr(self.disk, question), path) == answer
            for (question, path), answer in self._seen.items()
        )

    def _ask(self, question: str, ask: Callable[[str], T], path: str) -> T:
        try:
            found = ask(path)
        except (OSError, ValueError) as failure:
            self._keep(question, path, _fault(failure))
            raise
        self._keep(question, path, _content(found))
        return found

    def _keep(self, question: str, path: str, answer: _Answer) -> None:
        if self._seen.setdefault((question, path), answer) != answer:
            self.torn = True


def _answer(ask: Callable[[str], Any], path: str) -> _Answer:
    try:
        return _content(ask(path))
    except (OSError, ValueError) as failure:
        return _fault(failure)


def _content(found: Any) -> _Answer:
    """Give what a decision reads of an answer: of a stat what it is and which one (resolve.py), else all of it."""
    if isinstance(found, (str, list)):
        return True, found
    return True, found.st_mode, found.st_dev, found.st_ino, found.st_uid


def _fault(failure: OSError | ValueError) -> _Answer:
    """Give what a decision reads of a failure: its words, which no name or target of a link is taken for."""
    return False, str(getattr(failure, "strerror", failure))
