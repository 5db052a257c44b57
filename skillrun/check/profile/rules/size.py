"""A rule, or the whole profile, is larger than compilers take: 65,535 bytes of patterns for an operation (nix#4119)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.profile.finding import MOST_COMPARED
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject

_OVERHEAD: Final = 8  # bytes that a pattern costs besides its text, at least
_LARGE: Final = 32_000
_MOST: Final = 65_535


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    for rule in subject.rules:
        size = sum(len(str(text)) + _OVERHEAD for one in subject.filters(rule) for text in one.arguments)
        if size > _LARGE:
            message = f"the patterns of one rule take about {size} bytes, and 65,535 are compiled at most"
            yield subject.found(
                "size",
                Severity.WARNING if size < _MOST else Severity.ERROR,
                message,
                change="split it into rules of less than 16 KB",
                span=rule.span,
            )
    if len(subject.rules) > MOST_COMPARED:
        message = f"it has {len(subject.rules)} rules, and only the first {MOST_COMPARED} were compared with the others"
        yield subject.found(
            "size", Severity.WARNING, message, change="collapse paths inside one another", span=None
        )
    text = len(subject.profile.source.text)
    if text > _MOST:
        message = (
            f"the profile has {text} characters; large ones take long to load, and do not fit a command line"
        )
        yield subject.found(
            "size", Severity.NOTE, message, change="pass it by `-f`, and paths by `-D`", span=None
        )
