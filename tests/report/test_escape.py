"""Escaping: everything that a terminal would act on, reorder or hide is shown by its number."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillrun.report.escape import escape, is_hidden, sentence


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, `code` and \\n", "plain text, `code` and \\n"),
        ("Größe 大 é", "Größe 大 é"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("a\x00b\x7fc\x9bd", "a\\x00b\\x7fc\\x9bd"),
        ("a\u202eb\u2069c", "a\\u202eb\\u2069c"),
        ("a\u200bb\ufeffc\u00add", "a\\u200bb\\ufeffc\\xadd"),
        ("\U000e0041\U000e0020", "\\U000e0041\\U000e0020"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("\ufe0f\u3164\u115f\u034f\u2800", "\\ufe0f\\u3164\\u115f\\u034f\\u2800"),
        ("\ue000\U000f0000", "\\ue000\\U000f0000"),
        ("caf\udce9", "caf\\xe9"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_is_shown_how(text: str, shown: str) -> None:
    """Visible text stays, the rest becomes the escape that Python would write."""
    assert escape(text) == shown


@given(st.text(st.characters(categories=["C", "Z", "M", "L", "S"])))
@settings(print_blob=True, max_examples=300)
def test_random_text_holds_nothing_hidden_afterwards(text: str) -> None:
    """Whatever goes in: one line comes out, encodable, with nothing hidden in it; a second pass changes nothing."""
    shown = escape(text)
    assert not any(
        unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} for character in shown
    )
    assert not any(map(is_hidden, shown))
    assert shown.isprintable() or any(unicodedata.category(character) == "Zs" for character in shown)
    assert escape(shown) == shown
    shown.encode()


def test_prose_becomes_one_line() -> None:
    """A folded description is one line; what is not blank is escaped."""
    assert sentence("  two\n  lines\tand \x1b[2J ") == "two lines and \\x1b[2J"
