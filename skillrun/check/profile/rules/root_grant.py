"""Everything on disk is opened: a path filter that matches `/` and all below it.

Where it was not meant, a quote in a path that was put into the text broke out of its string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.profile.finding import covers
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject

_EVERYTHING: Final = frozenset({"^/", ".*", "^/.*", "^.*", "/", ""})


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        if not rule.allow or not any(
            covers(rule, operation) for operation in ("file-read-data", "file-write-data")
        ):
            continue
        writes = any(covers(rule, operation) for operation in ("file-write-data", "file-write-create"))
        for one in rule.filters:
            whole = one.name in {"subpath", "prefix"} and "/" in one.arguments
            whole |= one.name == "regex" and not _EVERYTHING.isdisjoint(one.arguments)
            if whole:
                severity = Severity.ERROR if writes else Severity.WARNING
                message = f"everything on disk may be {'written' if writes else 'read'}"
                yield subject.found(
                    "root-grant", severity, message, change="name the folders that are needed", span=one.span
                )
