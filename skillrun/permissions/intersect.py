"""Intersect: request ∩ ceilings, pure, with every cut explained by the line that made it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skillrun.permissions.bounds import Bounds, Root, meet_roots, smallest, together
from skillrun.permissions.capabilities import Capabilities, Limits, Network, inside, minimal
from skillrun.permissions.ceiling import Bound
from skillrun.permissions.environment import always_passed, refusal
from skillrun.permissions.grant import Capability, Item, Narrowed, Refused
from skillrun.permissions.reading import LIMIT_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillrun.permissions.grant import Value
    from skillrun.permissions.request import Asked
    from skillrun.permissions.resolve import Resolved
    from skillrun.problem import At

_VERBS: Final = {Capability.FS_READ: "read", Capability.FS_WRITE: "write"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One asked thing; a path comes with where it leads."""

    asked: Asked
    resolved: Resolved | None = None
    folder: bool = True


@dataclass(slots=True)
class Cut:
    """What is left of a request, as it is being found out."""

    read: set[Path] = field(default_factory=set)
    write: dict[Path, bool] = field(default_factory=dict)  # with whether to make it as a folder
    network: Network = field(default_factory=Network)
    timeout: float = math.inf
    env: set[str] = field(default_factory=set)
    limits: Limits = field(default_factory=Limits)
    granted: list[Item] = field(default_factory=list)
    narrowed: list[Narrowed] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    @property
    def capabilities(self) -> Capabilities:
        """The rights that are left, in normal form."""
        return Capabilities(
            frozenset(self.read),
            frozenset(self.write),
            self.network,
            self.timeout,
            frozenset(self.env),
            self.limits,
        )

    def give(self, asked: Asked, value: Value, limit_at: At | None) -> None:
        """Note something that is granted as it was asked for."""
        self.granted.append(Item(asked.capability, value, asked.at, asked=asked.value, limit_at=limit_at))

    def narrow(
        self, asked: Asked, given: tuple[Value, ...], limit_at: At, *, path: Path | None = None
    ) -> None:
        """Note something of which less is granted."""
        self.narrowed.append(Narrowed(asked.capability, asked.value, given, asked.at, limit_at, path))

    def refuse(self, asked: Asked, reason: str, limit_at: At | None, *, path: Path | None = None) -> None:
        """Note something of which nothing is granted."""
        self.refused.append(
            Refused(asked.capability, asked.value, reason, asked.at, limit_at or asked.at, path)
        )


def intersect(wanted: Sequence[Wanted], layers: Sequence[Bounds], *, top: Root) -> Cut:
    """Cut what is wanted down to what every layer allows. `top` stands for what no layer limits."""
    cut = Cut()
    read, write = together(layers, top=top)
    _numbers(cut, wanted, layers)
    for one in wanted:
        capability = one.asked.capability
        if capability is Capability.FS_READ:
            _path(cut, one, read, layers)
        elif capability is Capability.FS_WRITE:
            _path(cut, one, write, layers)
            _still_read(cut, one, read)
        elif capability is Capability.NETWORK:
            _network(cut, one.asked, layers)
        elif capability is Capability.ENV:
            _variable(cut, one.asked, layers)
    return cut


def _path(cut: Cut, one: Wanted, roots: Sequence[Root], layers: Sequence[Bounds]) -> None:
    asked, resolved = one.asked, one.resolved
    assert resolved is not None  # noqa: S101 - every path that is wanted was resolved by the caller
    verb = _VERBS[asked.capability]
    if resolved.fault is not None:
        cut.refuse(asked, f"`{asked.value}` leads nowhere: {resolved.fault}", None)
        return
    path = resolved.path
    whole = next((root for root in roots if inside(path, root.path)), None)
    parts = [] if whole else [root for root in roots if inside(root.path, path)]
    if whole is not None:
        _keep(cut, asked.capability, path, folder=one.folder)
        cut.give(asked, str(path), whole.at)
    elif parts:
        given = minimal(root.path for root in parts)
        kept = [root for root in parts if root.path in given]
        for root in kept:
            _keep(cut, asked.capability, root.path, folder=root.folder)
        cut.narrow(asked, tuple(sorted(str(p) for p in given)), kept[0].at, path=path)
    else:
        listed, at = _blame(asked.capability, path, layers)
        seen = f"`{asked.value}`" if str(path) == asked.value else f"`{asked.value}` is `{path}`,"
        reason = (
            f"{seen} outside every root that it may {verb}"
            if listed
            else f"the ceiling lets it {verb} nothing"
        )
        cut.refuse(asked, reason, at, path=path)


def _still_read(cut: Cut, one: Wanted, roots: Sequence[Root]) -> None:
    """Keep the reading that a wish to write includes, where only the writing was cut (the meet of both sides' rights)."""
    asked, resolved = one.asked, one.resolved
    if resolved is None or resolved.fault is not None or resolved.path in cut.write:
        return
    left = meet_roots((Root(resolved.path, asked.at),), roots)
    limits = {root.path: root.at for root in roots}
    for path in minimal(root.path for root in left if not any(inside(root.path, kept) for kept in cut.write)):
        limit_at = next(at for top, at in limits.items() if inside(path, top))
        cut.read.add(path)
        cut.granted.append(
            Item(Capability.FS_READ, str(path), asked.at, asked=asked.value, limit_at=limit_at)
        )


def _keep(cut: Cut, capability: Capability, path: Path, *, folder: bool) -> None:
    if capability is Capability.FS_READ:
        cut.read.add(path)
    else:
        cut.write.setdefault(path, folder)


def _blame(capability: Capability, path: Path, layers: Sequence[Bounds]) -> tuple[bool, At | None]:
    """Find the first list that leaves a path out, and whether it lists anything; else the last list."""
    found: tuple[bool, At | None] = (True, None)
    for layer in layers:
        own = layer.read if capability is Capability.FS_READ else layer.write
        bound = layer.ceiling.fs_read if capability is Capability.FS_READ else layer.ceiling.fs_write
        if own is None or bound is None:
            continue
        found = (bool(own), bound.at)
        if not any(inside(path, root.path) or inside(root.path, path) for root in own):
            break
    return found


def _network(cut: Cut, asked: Asked, layers: Sequence[Bounds]) -> None:
    want = (
        Network(everything=True) if asked.endpoint is None else Network(endpoints=frozenset({asked.endpoint}))
    )
    left = want
    limit_at: At | None = None
    for layer in layers:
        if layer.network is not None and layer.ceiling.network is not None:
            smaller = left & layer.network
            if limit_at is None or smaller != left:
                limit_at = layer.ceiling.network.at
            left = smaller
    cut.network |= left
    if left == want:
        cut.give(asked, asked.value, limit_at)
    elif left and limit_at is not None:
        cut.narrow(asked, tuple(sorted(map(str, left.endpoints))), limit_at)
    else:
        nothing = not any(layer.network for layer in layers)
        reason = (
            "the ceiling allows no network" if nothing else f"`{asked.value}` is on no list of the ceiling"
        )
        cut.refuse(asked, "the ceiling allows no network" if asked.value is True else reason, limit_at)


def _variable(cut: Cut, asked: Asked, layers: Sequence[Bounds]) -> None:
    name = str(asked.value)
    reason = refusal(name)
    if reason is not None:
        cut.refuse(asked, f"`{name}` is never passed: {reason}", None)
        return
    limit_at = None
    for layer in layers:
        if layer.env is not None and layer.ceiling.env is not None:
            limit_at = layer.ceiling.env.at
            if name not in layer.env:
                if name not in always_passed():  # it is there anyway, so nothing was cut
                    cut.refuse(asked, f"`{name}` is not in the ceiling's `env`", limit_at)
                return
    cut.env.add(name)
    cut.give(asked, name, limit_at)


def _numbers(cut: Cut, wanted: Sequence[Wanted], layers: Sequence[Bounds]) -> None:
    most = smallest(layer.ceiling.timeout for layer in layers if layer.ceiling.timeout is not None)
    asked = next((one.asked for one in wanted if one.asked.capability is Capability.TIMEOUT), None)
    cut.timeout = _number(cut, asked, most)
    if asked is None and most[1] is not None:
        cut.granted.append(Item(Capability.TIMEOUT, most[0], most[1], limit_at=most[1]))
    limits: dict[str, list[Bound[float]]] = {name: [] for name in LIMIT_NAMES}
    for layer in layers:
        for name, value, at in layer.ceiling.limits.value if layer.ceiling.limits else ():
            limits[name].append(Bound(value, at))
    asks = {
        str(one.asked.value).partition("=")[0]: one.asked
        for one in wanted
        if one.asked.capability is Capability.LIMITS
    }
    values = {
        name: _number(cut, asks.get(name), smallest(limits[name]), name=f"{name}=") for name in LIMIT_NAMES
    }
    cut.limits = Limits(**values)


def _number(cut: Cut, asked: Asked | None, most: tuple[float, At | None], *, name: str = "") -> float:
    if asked is None:
        return most[0]
    want = float(str(asked.value).rpartition("=")[2])
    if want <= most[0]:
        cut.give(asked, asked.value, most[1])
        return want if name == "" else int(want)
    assert most[1] is not None  # noqa: S101 - a number below infinity came from a line
    cut.narrow(asked, (f"{name}{most[0]}" if name else most[0],), most[1])
    return most[0]
