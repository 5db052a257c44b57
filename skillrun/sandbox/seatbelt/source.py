"""Source: the text of a profile with its places, and the faults found in it."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skillrun.problem import At

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a profile: offsets of its first character and behind its last."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """One profile's text. `path` is None for text that comes from nowhere on disk."""

    text: str
    path: Path | None = None
    starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts = [0]
        place = self.text.find("\n")
        while place >= 0:
            starts.append(place + 1)
            place = self.text.find("\n", place + 1)
        object.__setattr__(self, "starts", tuple(starts))

    def line(self, span: Span) -> int:
        """Return the line of a piece, counted from 1."""
        return bisect.bisect_right(self.starts, span.start)

    def at(self, span: Span) -> At:
        """Return the place of a piece with its first line, for a problem."""
        line = self.line(span)
        start = self.starts[line - 1]
        end = self.text.find("\n", start)
        text = self.text[start:] if end < 0 else self.text[start:end]
        last = min(span.end - start, len(text)) + 1
        return At(
            path=self.path,
            preset=None if self.path is not None else "profile",
            line=line,
            column=span.start - start + 1,
            end_column=max(last, span.start - start + 2),
            excerpt=text,
        )

    def words(self, span: Span) -> str:
        """Return a piece as it is written, on one line."""
        return " ".join(self.text[span.start : span.end].split())


OWN_LIMITS: Final = frozenset({"too-deep", "too-large", "too-long"})
"""Rules of faults that are this reader's alone: a Mac may take such a profile, and what it decides is not known here."""


class Fault(Exception):  # noqa: N818 - a fault of a profile, not of this program
    """Something in a profile that keeps it from being loaded; `rule` is the name of the problem."""

    def __init__(self, rule: str, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.rule, self.message, self.span = rule, message, span
