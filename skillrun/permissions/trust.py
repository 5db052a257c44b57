"""Trust: whether a run is not confined at all, which only the operator decides, for one exact version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.permissions.bounds import absolute
from skillrun.permissions.grant import Capability, Item, Refused, Requirement, Unconfined
from skillrun.problem import Problem, warning

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skillrun.permissions.ceiling import Ceiling
    from skillrun.permissions.layers import Layers
    from skillrun.permissions.place import Place
    from skillrun.permissions.request import Request
    from skillrun.permissions.resolve import Resolver


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a run is unconfined, or None, and what is to be said about it."""

    reason: Unconfined | None = None
    granted: tuple[Item, ...] = ()
    refused: tuple[Refused, ...] = ()
    warnings: tuple[Problem, ...] = ()


def judge(
    request: Request,
    layers: Layers,
    others: Iterable[Ceiling],
    *,
    skill: Path,
    digest: str,
    place: Place,
    resolver: Resolver,
) -> Verdict:
    """Decide whether a run is unconfined. `others` are all ceilings above the base that hold for it."""
    asked = next(iter(request.of(Capability.TRUST)), None)
    disabled, warnings = _disabled(layers, others)
    if asked is None:
        return Verdict(disabled, warnings=warnings)
    listed = [t for t in layers.trusted if resolver.follow(absolute(t.skill, place)).path == skill]
    match = next((t for t in listed if t.digest == digest), None)
    forbidden = layers.trust_floor
    if match is None or forbidden is not None:
        reason, at = "the operator's file does not list this skill under `trusted`", asked.at
        if listed and match is None:
            reason, at = "the operator trusts another version: the digest differs", listed[0].at
        elif match is not None and forbidden is not None:
            reason, at = (
                f"`require: {forbidden.value.value}` above the operator's file forbids it",
                forbidden.at,
            )
        refused = Refused(Capability.TRUST, asked.value, reason, asked.at, at)
        return Verdict(disabled, refused=(refused,), warnings=warnings)
    item = Item(Capability.TRUST, asked.value, asked.at, asked=asked.value, limit_at=match.at)
    return Verdict(Unconfined.TRUSTED, granted=(item,), warnings=warnings)


def _disabled(layers: Layers, others: Iterable[Ceiling]) -> tuple[Unconfined | None, tuple[Problem, ...]]:
    enabled = layers.base.enabled
    if enabled is None or enabled.value:
        return None, ()
    for ceiling in others:
        stricter = ceiling.require is not None and ceiling.require.value is not Requirement.NONE
        bound = (
            ceiling.require
            if stricter
            else ceiling.enabled
            if ceiling.enabled and ceiling.enabled.value
            else None
        )
        if bound is not None:
            message = f"`enabled: false` does not hold: {bound.at} asks for confinement"
            return None, (
                warning("ceiling-enabled", message, at=enabled.at, help="remove one of the two lines"),
            )
    return Unconfined.DISABLED, ()
