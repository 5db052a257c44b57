"""Diagnostics: a problem for people, with its line and carets; or on one line, for grep and editors."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from skillrun.problem import Severity
from skillrun.report.escape import escape
from skillrun.report.style import PLAIN, Style
from skillrun.report.text import counted, width
from skillrun.report.words import spot

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skillrun.problem import At, Problem

_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}
_MOST: Final = 100  # columns of an excerpt where the caller has no narrower idea
_BEFORE: Final = 30  # characters kept before the first caret of a line that is too long
_TAB: Final = "    "


def plain(
    problem: Problem, *, base: Path | None = None, style: Style = PLAIN, columns: int | None = None
) -> str:
    """Write a problem over several lines, without an end of line. Paths below `base` are written from there."""
    word = style(f"{problem.severity.value}[{escape(problem.rule)}]", _COLOURS[problem.severity], "bold")
    lines = [f"{word}: {style(escape(problem.message), 'bold')}"]
    gutter = 2
    if problem.at is not None:
        excerpt = _excerpt(problem.at, columns or _MOST)
        gutter = len(str(problem.at.line)) + 1 if excerpt else gutter
        blank = " " * gutter
        lines.append(f"{blank}{style('-->', 'blue')} {spot(problem.at, base)}")
        if excerpt:
            line, carets = excerpt
            bar = style("|", "blue")
            number = style(f"{problem.at.line}".rjust(gutter - 1), "blue")
            lines += [
                f"{blank} {bar}",
                f" {number} {bar} {line}".rstrip(),
                f"{blank} {bar} {style(carets, _COLOURS[problem.severity])}",
            ]
    if problem.help is not None:
        lines.append(f"{' ' * gutter} {style('=', 'blue')} help: {escape(problem.help)}")
    return "\n".join(lines)


def concise(problem: Problem, *, base: Path | None = None) -> str:
    """Write a problem on one line: `path:line:column: rule message`."""
    where = "skillrun" if problem.at is None else spot(problem.at, base)
    return f"{where}: {escape(problem.rule)} {escape(problem.message)}"


def in_passing(problem: Problem, *, base: Path | None = None, style: Style = PLAIN) -> str:
    """Write a problem on one line of a log that has other things in it, with its place and help at the end."""
    word = style(f"{problem.severity.value}[{escape(problem.rule)}]", _COLOURS[problem.severity])
    where = "" if problem.at is None else f" ({spot(problem.at, base)})"
    advice = "" if problem.help is None else f"; {escape(problem.help)}"
    return f"{word}: {escape(problem.message)}{where}{advice}"


def summary(problems: Iterable[Problem]) -> str:
    """Count problems by severity: `2 errors, 1 warning`; empty when there are none."""
    found = Counter(problem.severity for problem in problems)
    return ", ".join(counted(found[severity], severity.value) for severity in Severity if found[severity])


def _excerpt(at: At, columns: int) -> tuple[str, str] | None:
    """Return the source line and the carets below the part that is meant; None when there is no line to show."""
    if at.excerpt is None or at.line is None or at.path is None:
        return None
    text = at.excerpt.rstrip("\r\n")
    start = min(max((at.column or 1) - 1, 0), len(text))
    end = min(max((at.end_column or 0) - 1, start + 1), max(len(text), start + 1))
    cut = start - _BEFORE if len(text) > columns and start > _BEFORE else 0
    head, marked, tail = (_visible(part) for part in (text[cut:start], text[start:end], text[end:]))
    head = f"…{head}" if cut else head
    room = max(columns - width(head), 1)
    line = head + _first(marked + tail, room)
    carets = "^" * max(1, min(width(marked), room))
    return line, " " * width(head) + carets


def _visible(text: str) -> str:
    return escape(text.replace("\t", _TAB))


def _first(text: str, columns: int) -> str:
    return text if len(text) <= columns else text[: columns - 1] + "…"
