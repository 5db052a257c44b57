"""A `local` address on an outbound rule: at connect the local end is not bound yet.

Reports differ on what it does: it opened all egress (sandbox-runtime#131, #225), it matched nothing (pmg#374).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.profile.finding import Confidence
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        for one in subject.positive(rule):
            if one.name == "local" and {"network-outbound", "network*"} & set(rule.operations) and rule.allow:
                severity = Severity.ERROR if "network-outbound" in rule.operations else Severity.NOTE
                message = "`local` on an outbound rule may open every address"
                yield subject.found(
                    "local-on-outbound",
                    severity,
                    message,
                    change="write `remote`",
                    span=one.span,
                    confidence=Confidence.MEDIUM,
                )
