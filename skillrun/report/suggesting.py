"""Suggesting: what skills could ask for, as lines for a front matter, each with where it was seen; and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.report import shapes
from skillrun.report.checking import relative
from skillrun.report.document import name
from skillrun.report.escape import escape
from skillrun.report.words import near, spot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from skillrun.check.subject import Used
    from skillrun.check.suggest import Suggestion
    from skillrun.report.showing import View

_SHOWN = 3  # places shown of one part


def lines(suggestions: Iterable[Suggestion], view: View) -> Iterator[str]:
    """Write each suggestion."""
    for one in suggestions:
        yield view.style(near(one.subject.skill.manifest, view.base), "bold")
        yield from (f"  {escape(line)}" for line in one.yaml().splitlines())
        for part in one.parts:
            more = f" and {len(part.evidence) - _SHOWN} more" if len(part.evidence) > _SHOWN else ""
            seen = ", ".join(_seen(used, view.base) for used in part.evidence[:_SHOWN])
            yield f"    {escape(part.key)} {escape(part.value)}: {seen}{more}"
        for left in one.left:
            value = f"`{escape(left.used.use.value)}` " if left.used.use.value is not None else ""
            yield f"    not proposed: {value}{escape(left.reason)}: {_seen(left.used, view.base)}"
        yield ""


def shape(suggestions: Iterable[Suggestion], base: Path) -> shapes.Shape:
    """Shape them as `suggest/1`."""
    return {
        **shapes.schema("suggest"),
        "skills": [
            {
                "skill": name(one.subject.label),
                "path": relative(one.subject.skill.manifest, base),
                "yaml": one.yaml(),
                "parts": [
                    {"key": part.key, "value": name(part.value), "evidence": [_place(used, base) for used in part.evidence]}
                    for part in one.parts
                ],
                "left": [
                    {"value": None if left.used.use.value is None else name(left.used.use.value), "reason": left.reason,
                     "evidence": _place(left.used, base)}
                    for left in one.left
                ],
            }
            for one in suggestions
        ],
    }  # fmt: skip


def _seen(used: Used, base: Path | None) -> str:
    return f"{spot(used.at, base)} ({escape(used.use.what)})"


def _place(used: Used, base: Path) -> shapes.Shape:
    return {
        "path": relative(used.script.path, base),
        "line": used.use.line,
        "column": used.use.column,
        "what": used.use.what,
        "confidence": used.use.confidence.value,
    }
