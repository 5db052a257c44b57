"""Bounds: a ceiling whose paths have been resolved, and what several of them allow together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.errors import ConfigError
from skillrun.permissions.capabilities import Endpoint, Network, inside
from skillrun.permissions.spelled import expand
from skillrun.problem import Problem, error, warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillrun.permissions.ceiling import Bound, Ceiling
    from skillrun.permissions.place import Place
    from skillrun.permissions.reading import Reach
    from skillrun.permissions.resolve import Resolver
    from skillrun.permissions.spelled import Spelled
    from skillrun.problem import At


@dataclass(frozen=True, slots=True)
class Root:
    """One physical root of a ceiling, with its line. `folder`: made as a folder when it has to be made."""

    path: Path
    at: At
    folder: bool = True


@dataclass(frozen=True, slots=True)
class Bounds:
    """One layer with physical roots. None: the layer says nothing about that key."""

    ceiling: Ceiling
    read: tuple[Root, ...] | None = None
    write: tuple[Root, ...] | None = None
    network: Network | None = None
    env: frozenset[str] | None = None


def place_ceiling(ceiling: Ceiling, resolver: Resolver, place: Place) -> tuple[Bounds, tuple[Problem, ...]]:
    """Resolve the paths of a layer. A root that leads nowhere allows nothing and is a warning."""
    problems: list[Problem] = []
    bounds = Bounds(
        ceiling,
        _roots(ceiling.fs_read, resolver, place, problems),
        _roots(ceiling.fs_write, resolver, place, problems),
        None if ceiling.network is None else network_of(reach for reach, _ in ceiling.network.value),
        None if ceiling.env is None else frozenset(name for name, _ in ceiling.env.value),
    )
    return bounds, tuple(problems)


def absolute(spelled: Spelled, place: Place) -> str:
    """Return a ceiling path as absolute text; ConfigError when it needs a home and none is known."""
    try:
        return expand(spelled, place, place.workspace)
    except ValueError as wrong:
        raise ConfigError(
            error("ceiling-path", str(wrong), at=spelled.at, help="write the whole path")
        ) from None


def network_of(reaches: Iterable[Reach]) -> Network:
    """Make a network of the lines of a list."""
    lines = tuple(reaches)
    if True in lines:
        return Network(everything=True)
    return Network(endpoints=frozenset(line for line in lines if isinstance(line, Endpoint)))


def meet_roots(left: Iterable[Root], right: Iterable[Root]) -> tuple[Root, ...]:
    """Return of each related pair the deeper root, which is the line that limits; equal ones keep the earlier."""
    right = tuple(right)
    found: dict[Path, Root] = {}
    for a in left:
        for b in right:
            if inside(a.path, b.path):
                found.setdefault(a.path, a)
            elif inside(b.path, a.path):
                found.setdefault(b.path, b)
    return tuple(found.values())


def together(layers: Sequence[Bounds], *, top: Root) -> tuple[tuple[Root, ...], tuple[Root, ...]]:
    """Return the read and the write roots that all layers allow; `top` is the root of what nobody limits.

    Writing includes reading, in a ceiling as in a request, so write roots are read roots too.
    """
    read: tuple[Root, ...] = (top,)
    write: tuple[Root, ...] = (top,)
    for layer in layers:
        read = read if layer.read is None else layer.read if read == (top,) else meet_roots(read, layer.read)
        write = (
            write
            if layer.write is None
            else layer.write
            if write == (top,)
            else meet_roots(write, layer.write)
        )
    # Where nobody limits writing, writing must not speak for reading as well: a floor may limit reading alone.
    return (read if write == (top,) else (*read, *write)), write


def smallest(bounds: Iterable[Bound[float]]) -> tuple[float, At | None]:
    """Return the smallest of several numbers and its place; no number is no limit yet."""
    best: tuple[float, At | None] = (math.inf, None)
    for bound in bounds:
        if bound.value < best[0]:
            best = (bound.value, bound.at)
    return best


def _roots(
    listed: Bound[tuple[Spelled, ...]] | None, resolver: Resolver, place: Place, problems: list[Problem]
) -> tuple[Root, ...] | None:
    if listed is None:
        return None
    roots = []
    for spelled in listed.value:
        resolved = resolver.follow(absolute(spelled, place))
        left = resolved.escape(
            place.workspace, place.skill, *([spelled.base] if isinstance(spelled.base, Path) else [])
        )
        if resolved.fault is None and left is None:
            roots.append(Root(resolved.path, spelled.at, spelled.folder))
        else:
            reason = resolved.fault or f"a link leads out of `{left}`, to `{resolved.path}`"
            message = f"`{spelled.text}` allows nothing: {reason}"
            problems.append(
                warning("ceiling-path", message, at=spelled.at, help="correct the path, or remove the line")
            )
    return tuple(roots)
