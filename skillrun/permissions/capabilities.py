"""Capabilities: the rights a run can have, as a lattice a reviewer can hold in the head.

`a & b` is what both allow, `a <= b` says that a allows nothing b does not. Each constructor brings its
value to one normal form, so that equal rights are equal values; without that `a & a == a` fails
(facts/aesthetics 2.1.2).
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from skillrun.permissions.endpoint import Endpoint, host_covers, host_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Capabilities", "Endpoint", "Limits", "Network", "below", "inside", "meet", "minimal", "upward"]

_Ranges: TypeAlias = list[tuple[int, int]]


def inside(path: Path, root: Path) -> bool:
    """Whether a path is a root or below it, by whole components: `/data2` is not inside `/data`."""
    text, top = str(path), str(root)
    return top in {text, "/"} or text.startswith(top + "/")


def below(path: Path, root: Path) -> bool:
    """Whether a path lies in a root and is not the root itself; five times as fast as asking `path.parents`."""
    text, top = str(path), str(root)
    return text != top and (top == "/" or text.startswith(top + "/"))


def upward(path: Path) -> Iterator[str]:
    """Give a path and the folders above it as text, up to the root."""
    text = str(path)
    while len(text) > 1:
        yield text
        text = text[: text.rfind("/")]
    yield "/"


def minimal(paths: Iterable[Path]) -> frozenset[Path]:
    """Drop every path that lies below another one."""
    kept: list[Path] = []
    for path in sorted(paths, key=lambda p: len(str(p))):
        if not any(inside(path, root) for root in kept):
            kept.append(path)
    return frozenset(kept)


def meet(left: Iterable[Path], right: Iterable[Path]) -> frozenset[Path]:
    """Return what lies inside a root of both sets: of each related pair the deeper path."""
    right = tuple(right)
    return minimal(a if inside(a, b) else b for a in left for b in right if inside(a, b) or inside(b, a))


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one run; `math.inf` is the top, used only where a request leaves the choice to the ceiling."""

    memory: float = math.inf  # bytes, over the whole tree
    processes: float = math.inf
    file_size: float = math.inf  # bytes, one file
    output: float = math.inf  # bytes kept of each stream

    def __and__(self, other: Limits) -> Limits:
        """Return the smaller of each bound."""
        return Limits(
            min(self.memory, other.memory),
            min(self.processes, other.processes),
            min(self.file_size, other.file_size),
            min(self.output, other.output),
        )

    def __le__(self, other: Limits) -> bool:
        return self & other == self


@dataclass(frozen=True, slots=True)
class Network:
    """A set of endpoints; `everything` is its top (`network: true`), an empty set is `network: false`.

    Normal form: ports of one host rule are joined, and what a `*.suffix` rule already allows is not
    said again by a narrower one.
    """

    everything: bool = False
    endpoints: frozenset[Endpoint] = frozenset()

    def __post_init__(self) -> None:
        simple = len(self.endpoints) <= 1
        if self.everything or not simple:
            object.__setattr__(self, "endpoints", frozenset() if self.everything else _joined(self.endpoints))

    def __bool__(self) -> bool:
        return self.everything or bool(self.endpoints)

    def __and__(self, other: Network) -> Network:
        """Return the endpoints that both allow."""
        if self.everything or other.everything:
            return other if self.everything else self
        pairs = (a & b for a in self.endpoints for b in other.endpoints)
        return Network(endpoints=frozenset(pair for pair in pairs if pair is not None))

    def __or__(self, other: Network) -> Network:
        """Return the endpoints that either allows."""
        return Network(self.everything or other.everything, self.endpoints | other.endpoints)

    def __le__(self, other: Network) -> bool:
        return self & other == self

    def allows(self, host: str, port: int) -> bool:
        """Whether one host and port may be connected to. A host that has no normal form is never on a list."""
        if self.everything:
            return True
        try:
            name = host_form(host)
        except ValueError:
            return False
        return any(host_covers(e.host, name) and e.ports[0] <= port <= e.ports[1] for e in self.endpoints)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Rights in normal form. Paths are physical; one that is relative or climbs is a ValueError.

    Writing includes reading, so every write root is a read root too.
    """

    fs_read: frozenset[Path] = frozenset()  # read roots; includes every write root; no path below another
    fs_write: frozenset[Path] = frozenset()
    network: Network = Network()
    timeout: float = math.inf  # seconds
    env: frozenset[str] = frozenset()
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        write = minimal(map(_physical, self.fs_write))
        object.__setattr__(self, "fs_write", write)
        object.__setattr__(self, "fs_read", minimal({*map(_physical, self.fs_read), *write}))

    def __and__(self, other: Capabilities) -> Capabilities:
        """Return what both allow."""
        return Capabilities(
            fs_read=meet(self.fs_read, other.fs_read),
            fs_write=meet(self.fs_write, other.fs_write),
            network=self.network & other.network,
            timeout=min(self.timeout, other.timeout),
            env=self.env & other.env,
            limits=self.limits & other.limits,
        )

    def __le__(self, other: Capabilities) -> bool:
        return self & other == self

    def allows_read(self, path: Path) -> bool:
        """Whether a physical path may be read."""
        return any(inside(path, root) for root in self.fs_read)

    def allows_write(self, path: Path) -> bool:
        """Whether a physical path may be written."""
        return any(inside(path, root) for root in self.fs_write)


def _physical(path: Path) -> Path:
    text = str(path)
    if not text.startswith("/") or ".." in path.parts:
        raise ValueError(f"not a physical path: {text!r}")
    # POSIX keeps exactly two leading slashes apart, and pathlib with it; no system we run on gives them a meaning.
    return Path(os.path.normpath(text[1:])) if text.startswith("//") else path


def _joined(endpoints: Iterable[Endpoint]) -> frozenset[Endpoint]:
    ports: dict[str, _Ranges] = {}
    for endpoint in endpoints:
        ports.setdefault(endpoint.host, []).append(endpoint.ports)
    result: set[Endpoint] = set()
    for host, ranges in ports.items():
        above = [r for rule, rs in ports.items() if rule != host and host_covers(rule, host) for r in rs]
        result.update(Endpoint(host, low, high) for low, high in _without(_union(ranges), _union(above)))
    return frozenset(result)


def _union(ranges: Iterable[tuple[int, int]]) -> _Ranges:
    merged: _Ranges = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _without(ranges: _Ranges, holes: _Ranges) -> _Ranges:
    for first, last in holes:
        pieces = [((low, min(high, first - 1)), (max(low, last + 1), high)) for low, high in ranges]
        ranges = [piece for pair in pieces for piece in pair if piece[0] <= piece[1]]
    return ranges
