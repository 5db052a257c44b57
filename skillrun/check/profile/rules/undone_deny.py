"""A denial that a rule for a more exact operation undoes.

The exact operation is asked before its family, whatever the order: `(deny file-read* …)` does not hold where
`(allow file-read-data …)` matches (GreyhavenHQ/greywall#20, measured).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.profile.finding import Confidence
from skillrun.check.profile.samples import samples
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        if rule.allow or not rule.filters:
            continue
        told = False
        for target, operation in samples(subject, rule):
            decision = subject.evaluator.decide(operation, target)
            other = decision.rule
            if (
                decision.allowed
                and other is not None
                and decision.operation not in rule.operations
                and not told
            ):
                told = True
                line = subject.profile.source.line(other.span)
                message = (
                    f"`{target}` is denied here, and `{decision.operation}` on it is allowed by line {line}"
                )
                change = f"name `{decision.operation}` in this denial too"
                yield subject.found(
                    "undone-deny",
                    Severity.ERROR,
                    message,
                    change=change,
                    span=rule.span,
                    confidence=Confidence.HIGH if decision.certain else Confidence.MEDIUM,
                )
