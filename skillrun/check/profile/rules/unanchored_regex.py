"""A pattern that allows more than it looks like: it is searched anywhere, and without `$` any ending will do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.profile.finding import Confidence, covers
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        if not rule.allow or not any(
            operation.startswith(("file", "process-exec", "network", "default"))
            for operation in rule.operations
        ):
            continue
        for one in subject.positive(rule):
            for text in one.arguments if one.name == "regex" else ():
                pattern = str(text)
                open_start, open_end = (
                    not pattern.startswith(("^", "(^")),
                    not pattern.endswith(("$", "$)", "/", "/)", "/|$)", "$|/)", ".*")),
                )
                if open_start or (
                    open_end
                    and any(covers(rule, operation) for operation in ("file-write-data", "file-read-data"))
                ):
                    how = "anywhere in a path" if open_start else "with any ending"
                    message = f"`{pattern}` matches {how}"
                    yield subject.found(
                        "unanchored-regex",
                        Severity.WARNING if open_start else Severity.NOTE,
                        message,
                        change="begin with `^`, end with `$` or `($|/)`",
                        span=one.span,
                        confidence=Confidence.MEDIUM,
                    )
