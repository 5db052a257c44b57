"""The generated parts of the pages and the schemas are what the data and the code say today."""

from __future__ import annotations

import functools
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import generate
import presence
import pytest
import tables

import schemas
from skillrun.permissions.near import near_key
from skillrun.permissions.request import OTHERS_KEYS, TOP_KEYS
from skillrun.resources import table

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


def test_everything_generated_is_up_to_date() -> None:
    """Each table and each schema is what would be written now; the message is the diff."""
    found = generate.difference()
    assert not found, f"run `.venv/bin/python docs/generate.py`; it would change:\n{found}"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the pages and the schemas."""
    for name in ("docs", "schemas"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_a_changed_cell_is_a_diff(copy: Path) -> None:
    """A cell that somebody changed by hand is shown as the line that is wrong and the line that is right."""
    page = copy / "docs" / "reference" / "skillrun-yaml.md"
    page.write_text(
        page.read_text().replace("| `timeout` | `null` | error |", "| `timeout` | `null` | no limit |")
    )
    found = generate.difference(copy)
    assert "--- a/docs/reference/skillrun-yaml.md\n+++ b/docs/reference/skillrun-yaml.md\n" in found
    assert "\n-| `timeout` | `null` | no limit |" in found
    assert "\n+| `timeout` | `null` | error |" in found


def test_a_missing_schema_is_a_diff(copy: Path) -> None:
    """A schema that is not there is out of date too."""
    (copy / "schemas" / "skill-md.schema.json").unlink()
    assert "+++ b/schemas/skill-md.schema.json" in generate.difference(copy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- generated: no-such -->\n<!-- end -->", "there is no generated part `no-such`"),
        ("<!-- generated: presets -->\n\ntext", "never closed"),
    ],
)
def test_a_wrong_marker_stops(text: str, message: str) -> None:
    """A marker with a wrong name, or without its end, is no page that is silently left as it is."""
    with pytest.raises(SystemExit, match=message):
        generate.render(text, "page.md")


def test_every_part_is_on_a_page() -> None:
    """Nothing is generated that nobody can read."""
    pages = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    assert [name for name in tables.PARTS if f"<!-- generated: {name} -->" not in pages] == []


def test_a_new_key_needs_words() -> None:
    """A key that the code reads and nobody described stops the generation, as does the reverse."""
    for described, known in ((("a",), ("a", "b")), (("a", "b"), ("a",))):
        with pytest.raises(SystemExit, match="disagree about the keys of a request: b"):
            schemas.same_names(described=described, known=known, what="a request")


@pytest.mark.parametrize(
    ("key", "written", "layer", "cell"),
    [
        ("fs_read", "absent", "the base", "as in `default`"),
        ("fs_read", "`[]`", "the base", "nothing"),
        ("fs_write", "`null`", "the base", "nothing"),
        ("fs_write", "`null`", "a project's file", "nothing"),
        ("network", "absent", "a `floor`", "as above"),
        ("deny", "`[]`", "the machine file", "as above"),
        ("timeout", "`null`", "the base", "error"),
        ("limits", "`{}`", "the base", "as in `default`"),
        ("limits", "`{}`", "`skills.<key>.ceiling`", "as above"),
        ("enabled", "absent", "the base", "as in `default`"),
        ("enabled", "`null`", "a `floor`", "no such key"),
    ],
)
def test_cells_that_the_design_names(key: str, written: str, layer: str, cell: str) -> None:
    """The answers found by running agree with what the design says in words (7)."""
    place = 2 + (*presence.BASES, *presence.NARROWING).index(layer)
    (row,) = [row for row in _rows() if row[:2] == [f"`{key}`", written]]
    assert row[place] == cell


@functools.cache
def _rows() -> list[list[str]]:
    """Find the rows out once."""
    return presence.ceiling_rows()


def lines(value: object) -> Iterator[dict]:
    """Yield every map of a shipped table that gives a reason."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if isinstance(value, dict) and {"why", "reason"} & set(value):
        yield value
    for one in inner:
        yield from lines(one)


@pytest.mark.parametrize(
    "name", ["linux/system", "linux/seccomp", "protected", "secrets", "env", "runtime/interpreters"]
)
def test_no_reason_is_cut_off(name: str) -> None:
    """A comma in an unquoted reason makes a key of its rest; no line of a shipped table has such a key."""
    found = list(lines(table(name)))
    assert found
    assert [line for line in found if any(" " in key or value is None for key, value in line.items())] == []


def test_the_schema_knows_misspellings_as_the_reader_does() -> None:
    """The pattern of near keys takes what `near_key` takes, over every one-letter change and many others."""
    own = (*TOP_KEYS, *OTHERS_KEYS)
    pattern = re.compile(schemas.near(TOP_KEYS, but=own))
    letters = "aesx_-"
    words = {
        word
        for key in TOP_KEYS
        for place in range(len(key) + 1)
        for letter in letters
        for word in (
            key[:place] + letter + key[place:],
            key[:place] + letter + key[place + 1 :],
            key[:place] + key[place + 1 :],
            key[:place] + key[place : place + 2][::-1] + key[place + 2 :],
            key[:place].upper() + key[place:] + letter,
            key[:place] + key[place + 2 :] + letter,
        )
    }
    assert len(words) > 500
    wrong = [
        word
        for word in words - set(own)
        if bool(pattern.search(word)) != (near_key(word, TOP_KEYS) is not None)
    ]
    assert wrong == []
