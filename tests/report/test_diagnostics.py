"""Diagnostics: the exact form of a problem for people, and the one-line form."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillrun.problem import At, error, note, warning
from skillrun.report.diagnostics import concise, in_passing, plain, summary
from skillrun.report.style import Style

BASE = Path("/work")
LINE = '    - "/etc"'


def spot(column: int | None = 7, end: int | None = 13, excerpt: str | None = LINE, line: int = 4) -> At:
    """Make a place in a file below the base."""
    return At(BASE / "skills/demo/SKILL.md", line, column, end, excerpt=excerpt)


def test_the_form_with_a_line() -> None:
    """Rule and message, place, the line with carets under what is meant, help."""
    problem = error("write-outside", "skill asks to write outside", at=spot(), help="request a path below")
    assert plain(problem, base=BASE) == (
        "error[write-outside]: skill asks to write outside\n"
        "  --> skills/demo/SKILL.md:4:7\n"
        "   |\n"
        ' 4 |     - "/etc"\n'
        "   |       ^^^^^^\n"
        "   = help: request a path below"
    )


def test_the_form_without_a_line() -> None:
    """A place without an excerpt, a flag, a preset, and no place at all."""
    assert plain(warning("odd", "odd", at=At(BASE / "a"), help="do"), base=BASE) == (
        "warning[odd]: odd\n  --> a\n   = help: do"
    )
    assert plain(note("odd", "odd", at=At(flag="--read"))) == "note[odd]: odd\n  --> --read"
    assert plain(note("odd", "odd", at=At(preset="default"))) == "note[odd]: odd\n  --> preset default"
    assert plain(error("odd", "odd")) == "error[odd]: odd"


def test_a_long_line_number_moves_the_gutter() -> None:
    """The bars stand under one another for line 4 and for line 1234."""
    lines = plain(error("odd", "odd", at=spot(line=1234), help="h"), base=BASE).splitlines()
    assert [line.index("|") for line in lines[2:5]] == [6, 6, 6]
    assert lines[5].index("=") == 6


@pytest.mark.parametrize(
    ("excerpt", "column", "end", "line", "carets"),
    [
        ("a: \u202eb", 4, 6, "a: \\u202eb", "   ^^^^^^^"),
        ("\ta: b", 5, 6, "    a: b", "       ^"),
        ("a: 大きい", 4, 7, "a: 大きい", "   ^^^^^^"),
        ("abc", 1, None, "abc", "^"),
        ("abc", None, None, "abc", "^"),
        ("abc", 4, 4, "abc", "   ^"),
        ("abc", 99, 120, "abc", "   ^"),
        ("", 1, 1, "", "^"),
    ],
)
def test_carets_stand_under_what_is_meant(
    excerpt: str, column: int, end: int, line: str, carets: str
) -> None:
    """Also where the line holds escapes, tabs or wide characters, or the columns are beyond its end."""
    rows = plain(error("odd", "odd", at=spot(column, end, excerpt))).splitlines()
    assert rows[3].removeprefix(" 4 |").removeprefix(" ") == line
    assert rows[4].removeprefix("   | ") == carets


def test_a_line_without_end_is_cut_around_the_carets() -> None:
    """A line of a megabyte shows what matters of it, with marks where something is missing."""
    excerpt = "x" * 500_000 + "HERE" + "y" * 500_000
    rows = plain(error("odd", "odd", at=spot(500_001, 500_005, excerpt)), columns=60).splitlines()
    assert max(map(len, rows)) < 90
    start = rows[4].index("^")
    assert rows[3][start : start + 4] == "HERE"
    assert rows[4].count("^") == 4
    assert rows[3].endswith("…")
    assert "…x" in rows[3]


def test_nothing_of_a_file_reaches_the_terminal_raw() -> None:
    """Message, help, rule, path and line are data."""
    evil = "\x1b[2J\u202e"
    problem = error(evil, evil, at=At(Path(f"/{evil}"), 1, 1, 2, excerpt=evil), help=evil)
    for text in (plain(problem), concise(problem), in_passing(problem)):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_the_short_forms() -> None:
    """One line for grep and editors, one for a log that holds other things."""
    problem = error("odd", "it is odd", at=spot(), help="make it even")
    assert concise(problem, base=BASE) == "skills/demo/SKILL.md:4:7: odd it is odd"
    assert concise(error("odd", "it is odd")) == "skillrun: odd it is odd"
    assert in_passing(problem, base=BASE) == "error[odd]: it is odd (skills/demo/SKILL.md:4:7); make it even"


def test_a_summary_counts() -> None:
    """By severity, the worst first; nothing where there is nothing."""
    problems = [note("a", "a"), error("b", "b"), warning("c", "c"), error("d", "d")]
    assert summary(problems) == "2 errors, 1 warning, 1 note"
    assert summary([]) == ""


def test_colour_changes_no_letter() -> None:
    """With the colours taken out the text is the same."""
    import re

    problem = error("odd", "it is odd", at=spot(), help="make it even")
    coloured = plain(problem, base=BASE, style=Style(colour=True))
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain(problem, base=BASE)


def test_a_path_beside_the_base_is_whole() -> None:
    """`/work2` is not below `/work`."""
    assert concise(error("a", "b", at=At(Path("/work2/x")))) == "/work2/x: a b"
    assert concise(error("a", "b", at=At(Path("/work2/x"))), base=BASE) == "/work2/x: a b"
    assert concise(error("a", "b", at=At(Path("/work/x"))), base=Path("/")) == "/work/x: a b"
