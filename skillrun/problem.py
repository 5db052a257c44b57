"""Problem: the one shape of everything that can be wrong, and At: where it was found."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Severity(enum.Enum):
    """How much a problem matters: an error stops, a warning is acted on, a note is good to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class At:
    """Where a value came from: a spot in a file, a built-in preset, or a flag of one call.

    Exactly one of `path`, `preset` and `flag` is set. Lines and columns count from 1, columns in
    characters. `excerpt` is the source line, carried so that renderers need no disk.
    """

    path: Path | None = None
    line: int | None = None
    column: int | None = None
    end_column: int | None = None
    preset: str | None = None
    flag: str | None = None
    excerpt: str | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """Write the place as `file:line:column`, as `preset NAME`, or as the flag itself."""
        if self.path is not None:
            spot = "".join(f":{number}" for number in (self.line, self.column) if number is not None)
            return f"{self.path}{spot}"
        return f"preset {self.preset}" if self.preset is not None else str(self.flag)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: a kebab-case rule, a message in plain words, a place, and what to do."""

    rule: str
    severity: Severity
    message: str
    help: str | None = None
    at: At | None = None


def error(rule: str, message: str, *, at: At | None = None, help: str | None = None) -> Problem:  # noqa: A002 - the word of the JSON shape
    """Make a problem that stops."""
    return Problem(rule, Severity.ERROR, message, help, at)


def warning(rule: str, message: str, *, at: At | None = None, help: str | None = None) -> Problem:  # noqa: A002 - the word of the JSON shape
    """Make a problem that is acted on but does not stop."""
    return Problem(rule, Severity.WARNING, message, help, at)


def note(rule: str, message: str, *, at: At | None = None, help: str | None = None) -> Problem:  # noqa: A002 - the word of the JSON shape
    """Make a problem that is good to know."""
    return Problem(rule, Severity.NOTE, message, help, at)
