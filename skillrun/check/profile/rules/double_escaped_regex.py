r"""Two backslashes in a raw string: `#"\\."` asks for a backslash in the path, and there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        for one in subject.filters(rule):
            for text in one.arguments if one.name.endswith("regex") else ():
                if "\\\\" in str(text):
                    severity = Severity.WARNING if rule.allow else Severity.ERROR
                    message = f"`{text}` asks for a backslash in the path"
                    yield subject.found(
                        "double-escaped-regex",
                        severity,
                        message,
                        change='write one backslash in `#"…"`, or `[.]`',
                        span=one.span,
                    )
