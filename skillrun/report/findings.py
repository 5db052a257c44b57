"""Findings: what a check found, for people: with lines and carets, or one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.static.use import Confidence
from skillrun.report import diagnostics
from skillrun.report.escape import escape
from skillrun.report.text import counted
from skillrun.report.words import spot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skillrun.check.engine import Report
    from skillrun.check.finding import Finding
    from skillrun.report.showing import View

_RELATED = 5  # more places shown of one finding


def plain(report: Report, view: View) -> Iterator[str]:
    """Write each finding over several lines, then what was ignored, with its reason."""
    for finding in report.findings:
        yield quiet(_plain(finding, view))
        yield ""
    for hidden in report.ignored:
        where = spot(hidden.at, view.base)
        yield quiet(f"ignored[{escape(hidden.finding.rule)}]: {where}: {escape(hidden.reason)}")
    if report.ignored:
        yield ""


def concise(report: Report, base: Path | None) -> Iterator[str]:
    """Write each finding on one line: `path:line:column: rule message`."""
    for finding in report.findings:
        line = quiet(diagnostics.concise(finding.problem, base=base))
        # A file called `::error` must not give an order to whatever reads the log.
        yield f"./{line}" if line.startswith("::") else line


def total(report: Report) -> str:
    """Say in one line what was looked at and what it came to."""
    looked = f"{counted(len(report.subjects), 'skill')} and {counted(report.scripts, 'script')} checked"
    found = diagnostics.summary(finding.problem for finding in report.findings)
    if not report.subjects:
        return f"nothing was checked{f': {found}' if found else ''}"
    found = found or "nothing found"
    aside = [f"{len(report.ignored)} ignored"] if report.ignored else []
    aside += [f"{len(report.accepted)} in the baseline"] if report.accepted else []
    return f"{looked}: {found}" + (f" ({', '.join(aside)})" if aside else "")


def quiet(text: str) -> str:
    """Return text that gives no order to a GitHub runner, which obeys `##[…]` anywhere in a line of a log."""
    return text.replace("##[", "#\\x23[")


def _plain(finding: Finding, view: View) -> str:
    text = diagnostics.plain(finding.problem, base=view.base, style=view.style, columns=view.columns)
    at = finding.problem.at
    gutter = " " * (
        len(str(at.line)) + 1 if at is not None and at.line is not None and at.excerpt is not None else 2
    )
    related = [place for place in finding.related if place.path is not None]
    notes = [f"also {spot(place, view.base)}" for place in related[:_RELATED]]
    if len(related) > _RELATED:
        notes.append(f"and {counted(len(related) - _RELATED, 'more place')}")
    if finding.confidence is not Confidence.HIGH:
        notes.append(f"confidence {finding.confidence.value}")
    return "\n".join((text, *(f"{gutter} {view.style('=', 'blue')} note: {note}" for note in notes)))
