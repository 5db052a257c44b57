"""What the user copied last can be read and replaced: often a password, and soon pasted into a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.profile.finding import Confidence, first_of_each_rule
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject

_SERVICES: Final = (
    "com.apple.pasteboard.1",
    "com.apple.pboard",
)


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for name, decision, rule in first_of_each_rule(subject, "mach-lookup", _SERVICES):
        if rule.filters:  # a rule without a filter is `blanket-mach-lookup`
            message = f"the pasteboard is reached through `{name}`"
            yield subject.found(
                "pasteboard-service",
                Severity.WARNING,
                message,
                change="drop the service",
                span=rule.span,
                confidence=Confidence.HIGH if decision.certain else Confidence.MEDIUM,
            )
