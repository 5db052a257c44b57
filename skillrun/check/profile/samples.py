"""Samples: paths that a rule speaks about, to ask the evaluator about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.sandbox.seatbelt.tables import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Subject
    from skillrun.sandbox.seatbelt.model import Rule

_LEAVES: Final = (
    "file-read-data",
    "file-read-metadata",
    "file-read-xattr",
    "file-write-data",
    "file-write-create",
    "file-write-unlink",
    "file-write-mode",
    "process-exec*",
    "network-outbound",
    "network-bind",
)


def samples(subject: Subject, rule: Rule) -> Iterator[tuple[str, str]]:
    """Give paths that a rule's plain filters match, each with the leaf operations that the rule is about."""
    known = operations()
    asked = [
        leaf for leaf in _LEAVES if not set(known.line(leaf)).isdisjoint(set(rule.operations) - {"default"})
    ]
    for one in rule.filters:
        if one.name not in {"literal", "subpath"}:
            continue
        for text in one.arguments:
            path = f"{text}/x" if one.name == "subpath" and text != "/" else str(text)
            for leaf in asked:
                target = f"unix:{path}" if leaf.startswith("network") else path
                if subject.evaluator.decide(leaf, target).rule is not rule:
                    yield target, leaf
