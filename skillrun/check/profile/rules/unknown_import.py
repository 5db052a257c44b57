"""Another profile is imported, which is not known here: answers that it could change are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for one in subject.profile.imports:
        message = f"`{one.name}` is not known here: what it allows is in no answer"
        yield subject.found(
            "unknown-import",
            Severity.NOTE,
            message,
            change="read what it allows, or write out what is needed",
            span=one.span,
        )
