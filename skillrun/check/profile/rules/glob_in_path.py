"""A star in a path: filters know no globs, so it only matches a file with a star in its name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        for one in subject.filters(rule):
            for text in one.arguments if one.name in {"literal", "subpath", "prefix"} else ():
                if "*" in str(text) or "?" in str(text):
                    severity = Severity.WARNING if rule.allow else Severity.ERROR
                    message = f"`{text}` is no pattern here: a star stands for itself"
                    yield subject.found(
                        "glob-in-path", severity, message, change="write a `regex`", span=one.span
                    )
            for text in one.arguments if one.name.endswith("regex") else ():
                if re.search(r"/\*|\{[^{}]*,[^{}]*\}", str(text)):
                    severity = Severity.WARNING if rule.allow else Severity.ERROR
                    message = (
                        f"`{text}` looks like a glob: `/*` repeats the slash, braces stand for themselves"
                    )
                    yield subject.found(
                        "glob-in-path",
                        severity,
                        message,
                        change="write `[^/]*` for a star, `(a|b)` for braces",
                        span=one.span,
                    )
