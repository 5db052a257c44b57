"""Differing: what a change does to permissions: for a terminal, as Markdown for a pull request, and as JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from skillrun.check.difference import State
from skillrun.check.rights import Effect
from skillrun.report import shapes
from skillrun.report.document import name
from skillrun.report.escape import escape
from skillrun.report.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillrun.check.difference import SkillChange
    from skillrun.check.rights import Change
    from skillrun.report.showing import View

_SIGNS: Final = {Effect.GAINED: "+", Effect.WIDENED: "+", Effect.NARROWED: "-", Effect.LOST: "-"}
_TITLES: Final = (("gets", "gets"), ("asks", "asks for, and does not get"), ("uses", "scripts use"))
_MOST_FILES: Final = 20
MOST_CHARACTERS: Final = 60_000
"""Of a Markdown report: GitHub takes 65,536 in a comment."""


def lines(changes: Sequence[SkillChange], view: View) -> Iterator[str]:
    """Write it for a terminal: `+` is more than before, `-` is less."""
    for one in changes:
        yield f"{view.style(escape(one.label), 'bold')} {_state(one, escape)}".rstrip()
        for kind, title in _TITLES:
            for change in getattr(one, kind):
                sign = _SIGNS[change.effect]
                yield view.style(
                    f"  {sign} {title} {escape(_phrase(change))}", "red" if sign == "+" else "green"
                )
        for path, word in one.files[:_MOST_FILES]:
            yield f"    {word} {escape(path)}"
        if len(one.files) > _MOST_FILES:
            yield f"    and {counted(len(one.files) - _MOST_FILES, 'more file')}"
        yield ""


def total(changes: Sequence[SkillChange]) -> str:
    """Say in one line what it comes to."""
    if not changes:
        return "no skill changed"
    more = sum(one.more for one in changes)
    text = f"{counted(len(changes), 'skill')} changed"
    return f"{text}, {more} can do or ask for more" if more else f"{text}, none can do or ask for more"


def markdown(changes: Sequence[SkillChange]) -> Iterator[str]:
    """Write it for a pull request, the skills with more first. Text from skills is code, and can't leave it."""
    yield "### Permissions of skills"
    yield ""
    yield f"{total(changes)[:1].upper()}{total(changes)[1:]}."
    size = 0
    for one in sorted(changes, key=lambda change: (not change.more, change.label)):
        part = [*_part(one)]
        size += sum(len(line) + 1 for line in part)
        if size > MOST_CHARACTERS:
            yield ""
            yield "The rest is left out here: `skillrun diff` shows all of it."
            return
        yield from part


def shape(changes: Sequence[SkillChange]) -> shapes.Shape:
    """Shape it as `diff/1`."""
    return {
        **shapes.schema("diff"),
        "skills": [
            {
                "skill": name(one.label),
                "state": one.state.value,
                "moved_from": None if one.moved_from is None else name(one.moved_from),
                "more": one.more,
                "invalid": one.invalid,
                **{kind: [_change(change) for change in getattr(one, kind)] for kind, _ in _TITLES},
                "files": [{"path": name(path), "change": word} for path, word in one.files],
            }
            for one in changes
        ],
        "summary": {"changed": len(changes), "more": sum(one.more for one in changes)},
    }


def code(text: str) -> str:
    """Return text as Markdown code that no character of it can end, on one line, also inside a table."""
    shown = escape(text).replace("|", "\\|")
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _part(one: SkillChange) -> Iterator[str]:
    yield ""
    yield f"#### {code(one.label)} {_state(one, code)}".rstrip()
    yield ""
    rows = [(title, change) for kind, title in _TITLES for change in getattr(one, kind)]
    if rows:
        yield "| | permission | before | after |"
        yield "|---|---|---|---|"
    for title, change in rows:
        before = code(change.before) if change.before is not None else ""
        after = code(change.after) if change.after is not None else ""
        sign = "🔺" if change.effect.more else "🔻"
        yield f"| {sign} {change.effect.value} | {title} {code(change.capability)} | {before} | {after} |"
    if one.files:
        more = (
            f" and {counted(len(one.files) - _MOST_FILES, 'more file')}"
            if len(one.files) > _MOST_FILES
            else ""
        )
        listed = ", ".join(f"{code(path)} {word}" for path, word in one.files[:_MOST_FILES])
        yield "" if rows else f"{listed}{more}"
        if rows:
            yield f"{listed}{more}"


def _state(one: SkillChange, shown: Callable[[str], str]) -> str:
    moved = f" (was {shown(one.moved_from)})" if one.moved_from is not None else ""
    word = "" if one.state is State.CHANGED else one.state.value
    return f"{word}{moved}{' (invalid: does not run)' if one.invalid else ''}".strip()


def _phrase(change: Change) -> str:
    if change.before is not None and change.after is not None:
        return f"{change.capability}: {change.after} (was {change.before})"
    return f"{change.capability}: {change.after if change.after is not None else change.before}"


def _change(change: Change) -> shapes.Shape:
    return {
        "capability": change.capability,
        "effect": change.effect.value,
        "before": change.before,
        "after": change.after,
    }
