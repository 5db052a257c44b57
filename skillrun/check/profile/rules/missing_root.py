"""Nothing can start on macOS 26: `/` itself may not be read.

Without `(allow file-read* (literal "/"))` every program dies of SIGABRT before its first line (ai-jail#77, mise#12263).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    denies = any(
        not rule.allow and not rule.filters and "default" in rule.operations for rule in subject.rules
    )
    runs = any(
        rule.allow and any(operation.startswith("process-exec") for operation in rule.operations)
        for rule in subject.rules
    )
    if (
        denies
        and runs
        and not subject.evaluator.decide("file-read-data", "/").allowed
        and not subject.profile.imports
    ):
        message = "`/` may not be read, and since macOS 26 no program starts without it"
        yield subject.found(
            "missing-root",
            Severity.WARNING,
            message,
            change='add `(allow file-read* (literal "/"))`',
            span=None,
        )
