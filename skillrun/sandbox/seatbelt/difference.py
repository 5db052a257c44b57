"""Difference: what two profiles decide differently, found by asking both about everything that either names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from skillrun.sandbox.seatbelt.evaluate import Decision, Evaluator, OperationRules
from skillrun.sandbox.seatbelt.tables import filter_kinds, operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.sandbox.seatbelt.model import Filter, Profile

_PATHS: Final = frozenset({"literal", "subpath", "prefix"})
_ALWAYS: Final = (
    "/",
    "/Users/you/x",
    "/private/tmp/x",
    "/private/etc/hosts",
    "/usr/bin/env",
    "/Applications/x",
)
_ADDRESSES: Final = ("tcp://93.184.216.34:443", "tcp://127.0.0.1:8080", "udp://8.8.8.8:53")
_RELATIONS: Final = ("self", "same-sandbox", "children", "others", "pgrp", "initproc")
_NONE: Final = OperationRules((), None)
MOST_TARGETS: Final = 2_000
"""Paths, and names, that both profiles are asked about."""
_FILES: Final = ("file", "process-exec", "fs-")


@dataclass(frozen=True, slots=True)
class Different:
    """One question that two profiles answer differently."""

    operation: str
    target: str
    before: Decision
    after: Decision


def differences(before: Profile, after: Profile) -> Iterator[Different]:
    """Ask both profiles about every operation on every target that either has a filter for, and a few besides.

    Patterns are asked about through the literal text in them, so a difference between two patterns only may
    be missed; that is said where it is shown.
    """
    old, new = Evaluator(before), Evaluator(after)
    texts = _targets(before) | _targets(after)
    paths = sorted({*_ALWAYS, *(text for text in texts if text.startswith("/"))})[:MOST_TARGETS]
    names = sorted({text for text in texts if not text.startswith("/")} | {"x"})[:MOST_TARGETS]
    known: dict[tuple[object, ...], list[Different]] = {}
    for operation in sorted(operations().parents):
        if operation == "default" or (operation.endswith("*") and operation != "process-exec*"):
            continue
        asked = _asked(operation, paths, names)
        # Operations that no rule tells apart have one answer: most fall back to their family's.
        key = (
            *(one for side in (old, new) for one in _rules(side, operation)),
            asked[0],
            len(asked),
            _root(operation),
        )
        if key not in known:
            known[key] = [
                Different(operation, target, one, other)
                for target in asked
                if (one := old.decide(operation, target)).allowed
                is not (other := new.decide(operation, target)).allowed
            ]
        yield from (replace(one, operation=operation) for one in known[key])


def _rules(side: Evaluator, operation: str) -> tuple[str, ...]:
    """Return the steps on an operation's way up that have rules of their own."""
    return tuple(step for step in operations().line(operation) if side.rules(step) != _NONE)


def _root(operation: str) -> tuple[str, str]:
    """Return what else an answer depends on: the root of the tree, and how a question is read."""
    line = operations().line(operation)
    return line[-1], line[0].partition("-")[0]


def _asked(operation: str, paths: list[str], names: list[str]) -> list[str]:
    if operation.startswith("network"):
        return [*_ADDRESSES, *(f"unix:{path}" for path in paths)]
    if operation.startswith(_FILES):
        return paths
    if operation == "signal" or operation.startswith("process-info"):
        return list(_RELATIONS)
    return names


def _targets(profile: Profile) -> set[str]:
    """Return what a profile's filters are about: for a path also something below and beside it."""
    found: set[str] = set()
    for rule in profile.rules:
        pending: list[Filter] = list(rule.filters)
        while pending:
            one = pending.pop()
            pending += one.children
            kind = filter_kinds().get(one.name)
            for text in map(str, one.arguments):
                if one.name in _PATHS:
                    found |= {text, f"{text.rstrip('/')}/x", f"{text}x"}
                elif one.name == "regex":
                    found.add(_literal(text))
                elif kind is not None and kind.asks == "name" and kind.compare == "equal":
                    found |= {text, f"{text}.x"}
                elif kind is not None and kind.asks == "name" and kind.compare == "prefix":
                    found.add(f"{text}x")
    return found


def _literal(pattern: str) -> str:
    """Return a path that a pattern may be about: what of it is plain, up to the first thing that is not."""
    plain = []
    letters = iter(pattern.lstrip("^"))
    for letter in letters:
        if letter == "\\":
            plain.append(next(letters, ""))
        elif letter in ".[(*+?|$":
            break
        else:
            plain.append(letter)
    return "".join(plain) + "x"
