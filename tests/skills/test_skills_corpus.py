"""Every real front matter of the shared corpus is read right or reported."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from skillrun.errors import SkillError
from skillrun.skills.front_matter import read_front_matter

CORPUS = Path(__file__).resolve().parents[2] / "../shared/corpus/front_matter.jsonl.gz"


@pytest.fixture(scope="module")
def corpus() -> list[dict[str, Any]]:
    """Read the rows."""
    if not CORPUS.exists():
        pytest.skip("the shared corpus lies beside the repository, and only on the project's machines")
    with gzip.open(CORPUS) as lines:
        return [json.loads(line) for line in lines]


def data_of(row: dict[str, Any]) -> bytes:
    """Return the bytes of a row."""
    encoded = row.get("b64")
    return base64.b64decode(encoded) if encoded else row["text"].encode()


def complaint(row: dict[str, Any]) -> str | None:
    """Say in what a reading differs from the row's `expect`; None when it is as expected."""
    expect = row["expect"]
    try:
        front = read_front_matter(data_of(row), path=Path(row["path"]))
    except SkillError as wrong:
        told = wrong.problem.rule.removeprefix("front-matter-").replace("-", "_")
        if expect["class"] == "valid" and not expect.get("open"):
            return f"refused as {told}"
        right = bool(expect.get("open")) or told == expect["reason"]
        return None if right else f"{told} instead of {expect['reason']}"
    if expect.get("open"):
        return None if front.problems else "read in silence though two readings are defensible"
    if expect["class"] == "valid":
        name = front.text("name")
        return None if name == expect.get("name") else f"the name is {name!r}"
    if expect["reason"] == "request_type":
        return None  # it reads; the request in it is the business of tests/permissions
    return "read though it is invalid"


def test_every_row_is_read_right_or_reported(corpus: list[dict[str, Any]]) -> None:
    """4,085 real files: none is lost in silence, none is read in another way than it means."""
    assert len(corpus) > 4000
    wrong = [f"{row['repo']}/{row['path']}: {said}" for row in corpus if (said := complaint(row)) is not None]
    assert not wrong, "\n".join(wrong[:20])


def test_a_broken_reading_would_be_noticed(corpus: list[dict[str, Any]]) -> None:
    """The comparison itself tells rows apart: with every expectation changed, every closed row is a complaint."""
    closed = [
        row
        for row in corpus
        if not row["expect"].get("open") and row["expect"].get("reason") != "request_type"
    ]
    for row in closed[:500]:
        changed = (
            {"class": "invalid", "reason": "other"}
            if row["expect"]["class"] == "valid"
            else {"class": "valid", "name": "x"}
        )
        assert complaint({**row, "expect": changed}) is not None, row["path"]
