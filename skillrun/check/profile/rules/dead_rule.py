"""A path that no kernel ever asks about: a slash at its end, doubled slashes, `.` or `..` in it, no slash at its begin.

Rules are compared as they stand. On a denial that leaves open what it names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.profile.finding import PATH_FILTERS
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        for one in subject.filters(rule):
            for text in one.arguments if one.name in PATH_FILTERS - {"regex", "prefix"} else ():
                path = str(text)
                why = _why(path)
                if why:
                    severity = Severity.WARNING if rule.allow else Severity.ERROR
                    message = f"`{path}` never matches: {why}"
                    yield subject.found(
                        "dead-rule", severity, message, change="write the path plainly", span=one.span
                    )


def _why(path: str) -> str | None:
    if not path.startswith("/"):
        return "it is not absolute"
    if path != "/" and path.endswith("/"):
        return "it ends with a slash"
    parts = path.split("/")[1:]
    if "" in parts and path != "/":
        return "it has two slashes in a row"
    return "it has `.` or `..` in it" if {".", ".."} & set(parts) else None
