"""Finding: a problem that a check found, with how sure it is and what identifies it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.check.static.use import Confidence

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.problem import At, Problem, Severity


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a skill or with what guards it.

    `skill` is the skill's folder relative to the project, None for what belongs to no skill. `key` is what
    was found, in words that stay the same when lines move and messages are reworded: a capability and its
    value, a script and what it uses. `related` are more places of the same thing. `hideable` is false for
    what no ignore and no baseline covers.
    """

    problem: Problem
    skill: str | None
    key: tuple[str, ...]
    confidence: Confidence = Confidence.HIGH
    related: tuple[At, ...] = ()
    hideable: bool = True

    @property
    def rule(self) -> str:
        """The rule that found it."""
        return self.problem.rule

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return self.problem.severity

    @property
    def path(self) -> Path | None:
        """The file it is in, None where it is in none."""
        return self.problem.at.path if self.problem.at is not None else None

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits over rule, skill and key: no line, no wording, no place on this machine."""
        return fingerprint(self.rule, self.skill, self.key)


def fingerprint(rule: str, skill: str | None, key: tuple[str, ...]) -> str:
    """Return what identifies a finding over versions of a file."""
    text = json.dumps([rule, skill, *key], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
