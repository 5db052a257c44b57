"""Which uses of files a rule speaks about, and which of them a run has anyway."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.check.project import HOME, SCRATCH
from skillrun.check.static.use import Confidence, Kind
from skillrun.permissions.capabilities import inside
from skillrun.problem import Severity
from skillrun.resources import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.subject import Subject, Used

_DEVICES = (Path("/dev"), Path("/proc"))  # a run has its own
_TEMPORARY = tuple(map(Path, ("/tmp", "/var/tmp")))  # noqa: S108 - paths to compare with: a run has its own


def beyond(subject: Subject, kind: Kind) -> Iterator[tuple[Used, Path]]:
    """Give the uses of files that nobody asked for and that no run has by itself, each path once, with what it resolves to."""
    place = subject.place
    seen: set[Path] = set()
    for used in subject.uses(kind):
        if used.use.value is None:
            continue
        path = subject.resolved(used.use.value)
        free = (SCRATCH, *_DEVICES, *_TEMPORARY, *(_system() if kind is Kind.READ else ()))
        if kind is Kind.READ and inside(path, place.skill):
            continue
        if path in seen or any(inside(path, root) for root in free) or subject.covers(kind, path):
            continue
        seen.add(path)
        yield used, path


def in_home(path: Path) -> bool:
    """Whether a path lies in the home folder."""
    return inside(path, HOME)


def weight(subject: Subject) -> Severity:
    """Return how much an undeclared use matters: a warning beside a declaration, a note where there is none at all."""
    return Severity.WARNING if subject.declares else Severity.NOTE


def sure(used: Used) -> Confidence:
    """Return how sure a use is: one whose end is not known is one step less so."""
    if used.use.exact:
        return used.use.confidence
    return Confidence.MEDIUM if used.use.confidence is Confidence.HIGH else Confidence.LOW


def shown(used: Used) -> str:
    """Return the value of a use as a message shows it."""
    return f"{used.use.value}{'' if used.use.exact else '…'}"


@functools.cache
def _system() -> tuple[Path, ...]:
    lines = table("linux/system")
    return tuple(Path(line["path"]) for line in (*lines["read"], *lines["device"]))
