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
    for rule in subject.compared:
        if rule.allow or not rule.filters:
            continue
        undone = [
            (operation == "file-read-metadata", target, decision)
            for target, operation in samples(subject, rule)
            if (decision := subject.evaluator.decide(operation, target)).allowed
            and decision.rule is not None
            and decision.operation not in rule.operations
        ]
        if not undone:
            continue
        only_looked_at, target, decision = min(undone, key=lambda one: one[:2])
        line = subject.profile.source.line(decision.rule.span) if decision.rule else 0
        message = f"`{target}` is denied here, and `{decision.operation}` on it is allowed by line {line}"
        yield subject.found(
            "undone-deny",
            Severity.WARNING if only_looked_at else Severity.ERROR,
            message,
            change=f"name `{decision.operation}` in this denial too",
            span=rule.span,
            confidence=Confidence.HIGH if decision.certain else Confidence.MEDIUM,
        )
