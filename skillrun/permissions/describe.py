"""Describe: a ceiling as lines for people, each value with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.permissions.grant import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.permissions.ceiling import Ceiling
    from skillrun.permissions.grant import Value
    from skillrun.problem import At


@dataclass(frozen=True, slots=True)
class Line:
    """One value of one layer. An empty list is one line with the value None: nothing is allowed."""

    layer: str
    key: str
    value: Value
    at: At


def describe_ceiling(layer: str, ceiling: Ceiling) -> Iterator[Line]:
    """Yield every value that a layer sets; absent keys have no line."""
    for key, paths in (("fs_read", ceiling.fs_read), ("fs_write", ceiling.fs_write), ("deny", ceiling.deny)):
        if paths is not None:
            yield from (Line(layer, key, path.text, path.at) for path in paths.value)
            yield from [] if paths.value else [Line(layer, key, None, paths.at)]
    if ceiling.network is not None:
        lines = ceiling.network.value
        yield from (Line(layer, "network", r if isinstance(r, bool) else str(r), at) for r, at in lines)
        yield from [] if lines else [Line(layer, "network", False, ceiling.network.at)]  # noqa: FBT003 - the value of the line
    if ceiling.env is not None:
        yield from (Line(layer, "env", name, at) for name, at in ceiling.env.value)
        yield from [] if ceiling.env.value else [Line(layer, "env", None, ceiling.env.at)]
    for name, size, at in ceiling.limits.value if ceiling.limits else ():
        yield Line(layer, f"limits.{name}", size, at)
    for key, bound in (
        ("timeout", ceiling.timeout),
        ("enabled", ceiling.enabled),
        ("require", ceiling.require),
    ):
        if bound is not None:
            value = bound.value
            yield Line(layer, key, value.value if isinstance(value, Requirement) else value, bound.at)
