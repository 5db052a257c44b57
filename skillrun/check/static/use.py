"""Use: one thing that a script does, as far as its text tells."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Kind(enum.Enum):
    """What is used."""

    NETWORK = "network"
    READ = "read"
    WRITE = "write"
    ENV = "env"
    PROGRAM = "program"


class Confidence(enum.Enum):
    """How sure a reading is: a call of a known name, a hint such as an import, or a guess from words."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Use:
    """One use. Lines and columns count from 1, columns in characters.

    `value` is a host or `host:port`, a path, a variable, a program; None where the text does not tell. A
    path is written as in a request: relative to the working folder, `~/…`, `${skill}/…`, `${scratch}`,
    or absolute. `exact` says that nothing is known to follow it; else it is the known beginning of a path.
    `what` is the words that showed it, such as `requests.get`.
    """

    kind: Kind
    value: str | None
    line: int
    column: int
    what: str
    confidence: Confidence = Confidence.HIGH
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a script could not be read as its language. `newer`: a newer version of the language may take it."""

    message: str
    line: int | None = None
    column: int | None = None
    newer: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What the text of one script says. `language` is None where nothing here reads it.

    `foreign` says that it imports modules that are neither the language's own nor known not to connect.
    """

    language: str | None
    uses: tuple[Use, ...] = ()
    fault: Fault | None = None
    text: str = field(default="", repr=False)
    foreign: bool = False

    def line(self, number: int | None) -> str | None:
        """Return a line of the text, None when there is no such line."""
        lines = self.text.split("\n", number) if number else []
        return lines[number - 1].rstrip("\r") if number is not None and 0 < number <= len(lines) else None

    def of(self, *kinds: Kind) -> tuple[Use, ...]:
        """Return the uses of some kinds."""
        return tuple(use for use in self.uses if use.kind in kinds)
