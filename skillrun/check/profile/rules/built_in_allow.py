"""An operation that `(deny default)` does not cover, and that no rule denies.

Firefox and Chromium deny these by name and say why; process-info gives the arguments and environment of other
processes, file-map-executable loads code from anywhere, nvram* reads and writes firmware variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.profile.finding import Confidence
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject

_OPEN: Final = (
    ("process-info-pidinfo", "others", "arguments and environment of other processes"),
    ("file-map-executable", "/private/tmp/x.dylib", "code can be loaded from anywhere"),
    ("nvram-get", "boot-args", "firmware variables"),
    ("iokit-get-properties", "IOPlatformSerialNumber", "serial numbers and attached devices"),
    ("file-link", "/private/tmp/x", "a second name gets around a denial by path"),
)


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    if not any(
        not rule.allow and not rule.filters and "default" in rule.operations for rule in subject.rules
    ):
        return
    for operation, target, why in _OPEN:
        decision = subject.evaluator.decide(operation, target)
        if decision.allowed and decision.rule is None:
            message = f"`{operation}` is not covered by `(deny default)`: {why}"
            family = decision.operation
            yield subject.found(
                "built-in-allow",
                Severity.WARNING,
                message,
                change=f"add `(deny {family})`, then allow what is needed",
                span=None,
                confidence=Confidence.HIGH if decision.certain else Confidence.LOW,
            )
