"""A pattern with syntax that this engine does not know. It loads, and never matches (nolabs-ai/nono#1763, measured)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.problem import Severity
from skillrun.sandbox.seatbelt.regexes import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        for one in subject.filters(rule):
            for text in one.arguments if one.name.endswith("regex") else ():
                pattern = compiled(str(text))
                if pattern.dead is not None:
                    severity = Severity.WARNING if rule.allow else Severity.ERROR
                    message = f"`{text}` never matches: {pattern.dead}"
                    yield subject.found(
                        "unsupported-regex",
                        severity,
                        message,
                        change="use `( )`, `|`, `[ ]`, `*`, `+`, `?` only",
                        span=one.span,
                    )
