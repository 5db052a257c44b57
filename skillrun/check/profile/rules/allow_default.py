"""A rule that allows whatever no other rule names.

Deny lists are never complete: programs that were not thought of, mach services, devices and new operations stay
open. `(allow default)` lets a script mount, talk to launchd and start programs outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        if rule.allow and not rule.filters and "default" in rule.operations:
            message = "everything that no rule denies is allowed"
            yield subject.found(
                "allow-default",
                Severity.ERROR,
                message,
                change="write `(deny default)` and allow what is needed",
                span=rule.span,
            )
