"""A parameter was put into a pattern without `regex-quote`: its dots and brackets mean something there.

With `/Users/a.b` as a home, the pattern also matches `/Users/aXb`.
"""

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
            if one.name.endswith("regex") and one.spliced:
                names = ", ".join(f"`{name}`" for name in one.parameters)
                message = f"{names} went into a pattern without `regex-quote`"
                yield subject.found(
                    "unquoted-interpolation",
                    Severity.WARNING,
                    message,
                    change="write `(regex-quote (param …))` there",
                    span=one.span,
                )
