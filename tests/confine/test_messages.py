"""Words: what the processes of one run say to each other is read as JSON, and nothing else is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillrun.confine.words import parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_what_was_written_is_read(value: object) -> None:
    """Every message that `json.dumps` writes comes back, names that are no text included (PEP 383)."""
    assert parse(json.dumps(value).encode()) == value


@given(st.binary())
def test_any_bytes_are_a_message_or_a_value_error(words: bytes) -> None:
    """What is no message is refused as a wrong value, which every reader expects, and never read otherwise."""
    try:
        found = parse(words)
    except ValueError:
        return
    assert json.dumps(found) == json.dumps(json.loads(words))


@pytest.mark.parametrize("words", [b"", b"{}x", b"{} {}", b" {}", b"{}\n", b"\xef\xbb\xbf{}", b"\xff", '{"a": "é"'.encode("latin-1"), b"{"])  # fmt: skip
def test_what_stands_beside_a_message_is_refused(words: bytes) -> None:
    """Nothing comes before or behind a message, and it is UTF-8."""
    with pytest.raises(ValueError, match=r"behind|Expecting|decode"):
        parse(words)
