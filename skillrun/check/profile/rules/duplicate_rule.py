"""The same rule twice: one of them is not what its author thought it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.profile.finding import Confidence
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject
    from skillrun.sandbox.seatbelt.model import Filter


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    known: dict[object, int] = {}
    for rule in subject.rules:
        key = (rule.allow, frozenset(rule.operations), frozenset(_shape(one) for one in rule.filters))
        if key in known:
            message = f"the same rule stands in line {known[key]}"
            yield subject.found(
                "duplicate-rule",
                Severity.NOTE,
                message,
                change="drop one",
                span=rule.span,
                confidence=Confidence.HIGH,
            )
        known.setdefault(key, subject.profile.source.line(rule.span))


def _shape(one: Filter) -> tuple[object, ...]:
    """Return what a filter is, wherever it stands."""
    return (one.name, one.arguments, tuple(_shape(child) for child in one.children))
