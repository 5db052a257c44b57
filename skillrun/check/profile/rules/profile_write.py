"""The profile itself may be written from inside, so that the next run has another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.profile.finding import Confidence
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    path = subject.profile.source.path
    decision = None if path is None else subject.allowing("file-write-data", str(path.resolve()))
    if decision is not None and decision.rule is not None:
        message = f"`{path}` is this profile, and may be written"
        yield subject.found(
            "profile-write",
            Severity.ERROR,
            message,
            change="keep profiles outside of every folder that may be written",
            span=decision.rule.span,
            confidence=Confidence.HIGH if decision.certain else Confidence.MEDIUM,
        )
