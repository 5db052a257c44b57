"""Documents: what every JSON reader takes, whatever a script or a file name held."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillrun.report.document import TooDeepError, clean, name, write

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
@settings(print_blob=True, max_examples=200)
def test_random_values_become_strict_json(value: Any) -> None:
    """Strict UTF-8, no Infinity or NaN, no lone surrogate, and nothing that a terminal acts on."""
    text = write({"value": value}).decode()
    read = json.loads(text, parse_constant=pytest.fail)
    assert "\ud800" not in text
    assert not any(
        (ord(character) < 32 and character != "\n") or 0x7F <= ord(character) < 0xA0 for character in text
    )
    assert not set(text) & set("\u202e\u2066\u200b\ufeff\u2028\ue000")
    json.dumps(read, ensure_ascii=False).encode()


def test_hidden_characters_are_escaped_and_not_lost() -> None:
    """They stand in the document as JSON's own escapes."""
    value = "a\u202eb\x9bc\U000e0041d"
    text = write({"v": value}).decode()
    assert "a\\u202eb\\u009bc\\udb40\\udc41d" in text
    assert json.loads(text)["v"] == value


def test_numbers_that_json_does_not_have_are_null() -> None:
    """No bound is null, not Infinity."""
    assert json.loads(write({"a": math.inf, "b": [-math.inf, math.nan], "c": 1.5})) == {
        "a": None,
        "b": [None, None],
        "c": 1.5,
    }


def test_names_that_are_not_utf8_are_percent_encoded() -> None:
    """Stray bytes as %XX, and then `%` itself too, so that two names never become one."""
    assert name(os.fsdecode(b"/x/caf\xe9")) == "/x/caf%E9"
    assert name(os.fsdecode(b"/x/100%\xff")) == "/x/100%25%FF"
    assert name("/x/100% caf\u00e9") == "/x/100% caf\u00e9"


def test_what_is_nested_too_deeply_is_refused() -> None:
    """A document that would overflow a reader's stack is not made."""
    value: Any = 1
    for _ in range(5000):
        value = [value]
    with pytest.raises(TooDeepError):
        clean(value)
