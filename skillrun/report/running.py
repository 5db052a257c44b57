"""Running: what `run` says around a script, one line each, so that none can be mistaken for another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.permissions.grant import Capability, Requirement
from skillrun.report.escape import escape
from skillrun.report.words import amount, near, permission, spot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skillrun.launch.result import Denial
    from skillrun.permissions.grant import Grant, Item, Narrowed, Refused, Value
    from skillrun.sandbox.guarantee import Guarantees
    from skillrun.skills.model import Skill

ARGUMENT: Final = "argument"
"""The flag of what was granted because a person typed it as an argument."""


KERNEL: Final = "kernel"
"""The evidence of a denial that the kernel has told of; any other is a guess."""
NOTHING: Final = "it asks for nothing: of your files it can read its own folder and no other"
NOTHING_TYPED: Final = "it asks for nothing: of your files it can read its own folder and what you typed"


def headline(skill: Skill, script: str, grant: Grant, *, enforced: str, base: Path | None) -> str:
    """Write the one line before a start: `demo/hello.sh [linux 1, confined] read:2 write:1 network:none`."""
    rights = grant.capabilities
    hosts = len(rights.network.endpoints)
    network = "all" if rights.network.everything else f"{hosts} hosts" if hosts else "none"
    reads = len(rights.fs_read - rights.fs_write)
    label = escape(skill.key) if skill.key is not None else near(skill.found, base)
    text = (
        f"{label}/{escape(script)} [{enforced}] read:{reads} write:{len(rights.fs_write)} network:{network}"
    )
    items = typed(grant)
    if items:
        text += "; from argument: " + ", ".join(permission(one.capability, one.asked) for one in items)
    return text


def typed(grant: Grant) -> tuple[Item, ...]:
    """Return what was granted because a person typed it as an argument."""
    return tuple(item for item in grant.granted if item.at.flag == ARGUMENT)


def enforcement(backend: str, level: int | None, promised: Guarantees) -> str:
    """Name what enforces a run: `linux 1, confined`, `passthrough, unconfined`."""
    word = "unconfined"
    if not promised.missing(Requirement.FULL):
        word = "full"
    elif not promised.missing(Requirement.CONFINED):
        word = "confined"
    return f"{backend}, {word}" if level is None else f"{backend} {level}, {word}"


def cuts(grant: Grant, *, base: Path | None) -> Iterator[str]:
    """Write one line for each cut, with the place of the request and the place of the limit."""
    for narrowed in grant.narrowed:
        asked = permission(narrowed.capability, narrowed.asked)
        given = ", ".join(_given(narrowed.capability, value, base) for value in narrowed.given)
        yield f"narrowed: {asked} to {given} ({_places(narrowed, base)})"
    for refused in grant.refused:
        asked = permission(refused.capability, refused.asked)
        yield f"refused: {asked}: {escape(refused.reason)} ({_places(refused, base)})"


def denied(found: Denial, *, base: Path | None) -> str:
    """Write what was kept from a script, on what evidence, and the flag that would allow it."""
    what = {"read": "reading", "write": "writing"}.get(found.operation, "the network")
    where = "" if found.path is None else f" {near(found.path, base)}"
    sure = (
        "it was denied" if found.evidence == KERNEL else "perhaps it was denied (a guess from what it said)"
    )
    fix = "" if found.fix is None else f"; `{escape(found.fix)}` would allow it"
    return f"{sure}: {what}{where}{fix}"


def _places(cut: Narrowed | Refused, base: Path | None) -> str:
    typed = cut.asked_at.flag == ARGUMENT
    asked = "typed as an argument" if typed else f"asked at {spot(cut.asked_at, base)}"
    return f"{asked}, limit at {spot(cut.limit_at, base)}"


def _given(capability: Capability, value: Value, base: Path | None) -> str:
    if capability in {Capability.FS_READ, Capability.FS_WRITE}:
        return near(str(value), base) or "."
    return amount(capability, value)
