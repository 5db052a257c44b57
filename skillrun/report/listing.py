"""Listing: the skills of some roots, for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.permissions.script_entries import accesses
from skillrun.report.escape import escape, sentence
from skillrun.report.style import PLAIN, Style
from skillrun.report.text import clip, counted, fold_items
from skillrun.report.words import near, permission

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skillrun.permissions.request import Request
    from skillrun.problem import Problem
    from skillrun.skills.discover import Found
    from skillrun.skills.model import Skill


@dataclass(frozen=True, slots=True)
class Row:
    """One skill as it is listed: what it asks for, and everything that is wrong with it.

    `valid` says that nothing of it, its request included, is an error; only then does it run at all.
    """

    skill: Skill
    request: Request
    valid: bool
    by_name: bool
    shadowed_by: Path | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything that was found. `problems` are those of the roots; each row has its own."""

    roots: tuple[Found, ...]
    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """The problems of the roots, then those of each skill."""
        return (*self.problems, *(found for row in self.rows for found in row.problems))


def lines(listed: Listing, *, base: Path | None, columns: int, style: Style = PLAIN) -> Iterator[str]:
    """Write a list: each skill with its folder, description, scripts and what it asks for."""
    for row in listed.rows:
        yield from entry(row, base=base, columns=columns, style=style)
        yield ""
    scripts = sum(len(row.skill.scripts) for row in listed.rows)
    invalid = sum(not row.valid for row in listed.rows)
    total = f"{counted(len(listed.rows), 'skill')}, {counted(scripts, 'script')}"
    yield f"{total}, {invalid} invalid" if invalid else total


def entry(row: Row, *, base: Path | None, columns: int, style: Style = PLAIN) -> Iterator[str]:
    """Write one skill."""
    skill = row.skill
    folder = near(skill.found, base)
    label = escape(skill.key) if skill.key is not None else folder
    state = _state(row, base)
    head = style(label, "bold") + (f"  {style(state, 'red' if not row.valid else 'yellow')}" if state else "")
    yield head
    if skill.key is not None:
        yield f"  {style(folder, 'dim')}"
    if skill.description:
        yield "  " + clip(sentence(skill.description), max(columns - 2, 1))
    scripts = [_script_word(script.name, script.tool, script.command is not None) for script in skill.scripts]
    yield from fold_items(scripts or ["none"], columns, first="  scripts   ", indent=" " * 12)
    if row.valid:
        asks = [permission(one.capability, one.value) for one in row.request.asked]
        asks += [
            f"{one.access} the file in `{escape(one.name)}` of {escape(script)}"
            for script, one in accesses(row.request.entries)
        ]
        yield from fold_items(asks or ["nothing"], columns, first="  asks for  ", indent=" " * 12)


def _state(row: Row, base: Path | None) -> str:
    """Say what keeps a skill from being run by its key."""
    if not row.valid:
        return "(invalid: does not run)"
    if row.shadowed_by is not None:
        return f"(shadowed by {near(row.shadowed_by, base)})"
    return "" if row.by_name else "(run by its path only)"


def _script_word(name: str, tool: bool, starts: bool) -> str:  # noqa: FBT001 - two facts of one script
    remark = "" if starts and tool else " (not a tool)" if starts else " (can't be started)"
    return escape(name) + remark
