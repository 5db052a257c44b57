"""Approving: what a person is shown before a skill is approved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.rights import phrase
from skillrun.report.escape import escape
from skillrun.report.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillrun.check.finding import Finding
    from skillrun.check.rights import Change, Rights
    from skillrun.check.subject import Subject
    from skillrun.report.showing import View


def lines(
    subject: Subject, held: Rights, changed: Sequence[Change], *, known: bool, view: View
) -> Iterator[str]:
    """Write what a skill gets, what of it is new since it was approved, and which scripts it has."""
    yield view.style(escape(subject.label), "bold") + ("" if known else " (new)")
    data = held.data()
    for key in ("fs_read", "fs_write", "network", "env", "denied"):
        value = data[key]
        text = "every host" if value is True else ", ".join(escape(str(one)) for one in value) or "nothing"
        if key != "denied" or value:
            yield from view.pair(key, text)
    yield from view.pair("timeout", f"{data['timeout']:g} s" if data["timeout"] is not None else "no limit")
    if held.unconfined is not None:
        yield from view.pair("UNCONFINED", escape(held.unconfined), "red")
    scripts = ", ".join(escape(script.name) for script in subject.skill.scripts) or "none"
    yield from view.pair("scripts", scripts)
    for change in changed:
        colour = "red" if change.effect.more else "green"
        yield from view.pair("change", escape(phrase(change)), colour)
    yield ""


def gone(label: str) -> str:
    """Say that the entry of a skill is taken out."""
    return f"{escape(label)}: is not here any more, its entry is removed\n"


def total(subjects: Sequence[Subject], differing: Sequence[Finding], broken: Sequence[str]) -> str:
    """Say in one line what differs."""
    moved = {found.skill for found in differing if found.skill is not None}
    ready = len(subjects) - len(moved) - len(broken)
    text = f"{counted(len(subjects), 'skill')}: {ready} approved, {len(moved)} not as approved"
    return f"{text}, {len(broken)} invalid" if broken else text
