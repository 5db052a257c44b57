"""A rule that never decides: a later one for the same operations matches all that it matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.profile.finding import Confidence
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject
    from skillrun.sandbox.seatbelt.model import Rule


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.compared:
        later = subject.rules[rule.index + 1 :]
        for other in later:
            if (
                other.allow is rule.allow
                or not set(rule.operations) <= set(other.operations)
                or not _wider(other, rule)
            ):
                continue
            line = subject.profile.source.line(other.span)
            severity = Severity.WARNING if other.allow else Severity.NOTE
            message = f"this `{rule.decision}` never decides: line {line} matches all of it later"
            yield subject.found(
                "shadowed-rule",
                severity,
                message,
                change="drop it, or move it behind that line",
                span=rule.span,
                confidence=Confidence.MEDIUM,
            )
            break


def _wider(other: Rule, rule: Rule) -> bool:
    """Tell whether a rule matches all that another one does, as far as its filters are plain."""
    if not rule.filters:
        return not other.filters
    covering = [(one.name, str(text)) for one in other.filters for text in one.arguments]
    return bool(other.filters) and all(
        one.name in {"literal", "subpath"}
        and one.arguments
        and all(_covered(one.name, str(text), covering) for text in one.arguments)
        for one in rule.filters
    )


def _covered(name: str, text: str, covering: list[tuple[str, str]]) -> bool:
    if (name, text) in covering:
        return True
    return any(kind == "subpath" and f"{text}/".startswith(f"{top.rstrip('/')}/") for kind, top in covering)
