"""Subtract: what is denied goes out of a cut, with the deny line as the reason (law 1: after the intersection)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.permissions.grant import Capability, Item, Refused
from skillrun.permissions.survey import denied_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillrun.permissions.grant import Denied, Narrowed
    from skillrun.permissions.intersect import Cut
    from skillrun.permissions.resolve import Resolver

_PATHS = frozenset({Capability.FS_READ, Capability.FS_WRITE})


def subtract(cut: Cut, denied: Mapping[str, Denied], resolver: Resolver) -> None:
    """Take every path out of a cut that a denied one covers. Denied paths below a granted one stay for the backend."""
    hit = {p: d for p in {*cut.read, *cut.write} if (d := denied_by(p, denied, resolver)) is not None}
    if not hit:
        return
    gone = {str(path): d for path, d in hit.items()}
    cut.read -= hit.keys()
    cut.write = {path: folder for path, folder in cut.write.items() if path not in hit}
    granted, cut.granted = cut.granted, []
    for item in granted:
        one = gone.get(str(item.value)) if item.capability in _PATHS else None
        if one is None:
            cut.granted.append(item)
        else:
            cut.refused.append(_refused(item, one))
    narrowed, cut.narrowed = cut.narrowed, []
    for narrow in narrowed:
        left = tuple(
            value for value in narrow.given if narrow.capability not in _PATHS or str(value) not in gone
        )
        if left:
            cut.narrowed.append(replace(narrow, given=left))
        else:
            cut.refused.append(_refused(narrow, gone[str(narrow.given[0])]))


def _refused(what: Item | Narrowed, denied: Denied) -> Refused:
    reason = f"`{denied.path}` is denied: {denied.reason}"
    if isinstance(what, Item):
        return Refused(what.capability, what.asked, reason, what.at, denied.at, Path(str(what.value)))
    return Refused(what.capability, what.asked, reason, what.asked_at, denied.at, what.resolved)
