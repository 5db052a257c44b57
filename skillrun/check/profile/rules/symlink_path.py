"""A path through a link that every Mac has: the kernel asks about what the link leads to.

A rule on `/tmp/x` never matches the file, which is `/private/tmp/x` (measured: Protonk, mxc, sandbox-runtime#596). A
metadata rule on the link itself is right, and needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.profile.finding import PATH_FILTERS
from skillrun.problem import Severity
from skillrun.sandbox.seatbelt.tables import links

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject
    from skillrun.sandbox.seatbelt.model import Rule


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        for one in subject.filters(rule):
            for text in one.arguments if one.name in PATH_FILTERS else ():
                path = str(text).lstrip("^")
                link = next(
                    (
                        link
                        for link in links()
                        if path.startswith(f"{link}/") or (path == link and one.name != "literal")
                    ),
                    None,
                )
                if link is None or (set(rule.operations) <= {"file-read-metadata", "file-test-existence"}):
                    continue
                if _said_both_ways(subject, rule, links()[link] + path[len(link) :]):
                    continue
                severity = Severity.WARNING if rule.allow else Severity.ERROR
                message = f"`{path}` never matches: `{link}` is a link to `{links()[link]}`"
                yield subject.found(
                    "symlink-path",
                    severity,
                    message,
                    change=f"write `{links()[link]}{path[len(link) :]}`",
                    span=one.span,
                )


def _said_both_ways(subject: Subject, rule: Rule, real: str) -> bool:
    """Tell whether the same rule also names the real path, as careful authors do."""
    return any(str(text).lstrip("^") == real for one in subject.filters(rule) for text in one.arguments)
