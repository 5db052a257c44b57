"""Other applications can be made to act by Apple Events: Terminal runs what it is told, Finder deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.profile.finding import Confidence, first_of_each_rule
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject

_SERVICES: Final = (
    "com.apple.coreservices.appleevents",
    "com.apple.appleeventsd",
)


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for name, decision, rule in first_of_each_rule(subject, "mach-lookup", _SERVICES):
        if rule.filters:  # a rule without a filter is `blanket-mach-lookup`
            message = f"Apple Events are sent through `{name}`"
            yield subject.found(
                "apple-events",
                Severity.ERROR,
                message,
                change="drop the service",
                span=rule.span,
                confidence=Confidence.HIGH if decision.certain else Confidence.MEDIUM,
            )
    opened = subject.allowing("appleevent-send", "com.apple.Terminal")
    if opened is not None and opened.rule is not None and "default" not in opened.rule.operations:
        message = "`appleevent-send` is allowed: other applications do what the script tells them"
        yield subject.found(
            "apple-events", Severity.ERROR, message, change="drop `appleevent-send`", span=opened.rule.span
        )
