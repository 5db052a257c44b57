"""Audit: every rule over a profile, what keeps it from loading first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.profile.finding import USER_HOME, Confidence, Finding, Limits, Subject
from skillrun.check.profile.rules import RULES
from skillrun.problem import Severity
from skillrun.sandbox.seatbelt.parse import parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillrun.sandbox.seatbelt.model import Profile

_ROUNDS: Final = 50  # parameters are found one after another, since each may hide the next
_ORDER: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def audit(profile: Profile, *, limits: Limits | None = None) -> tuple[Finding, ...]:
    """Return what is wrong with a profile, the worst first, in the order of its lines."""
    subject = Subject(profile, limits)
    found = [Finding(fault, Confidence.HIGH) for fault in profile.faults]
    found += [finding for rule in RULES for finding in rule.find(subject)]
    return tuple(dict.fromkeys(sorted(found, key=_place)))


def _place(finding: Finding) -> tuple[int, int, int]:
    at = finding.problem.at
    return (_ORDER[finding.problem.severity], at.line or 0 if at else 0, at.column or 0 if at else 0)


def assumed(
    text: str, parameters: Mapping[str, str], *, path: Path | None = None
) -> tuple[Profile, dict[str, str]]:
    """Parse a profile whose parameters are not all known; return it and the values that were made up.

    Every unknown parameter is taken as set, because a rule that it turns on is worth looking at; one with HOME
    in its name as a home folder, another as a folder of its own.
    """
    made_up: dict[str, str] = {}
    for _ in range(_ROUNDS):
        profile = parse(text, {**made_up, **parameters}, path=path)
        new = {
            name: _value(name)
            for name in profile.parameters
            if name not in parameters and name not in made_up
        }
        if not new:
            break
        made_up |= new
    return profile, made_up


def _value(name: str) -> str:
    return USER_HOME if "HOME" in name.upper() else f"/param/{name}"
