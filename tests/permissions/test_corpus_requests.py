"""Real front matter: wrong requests are errors, and nobody else's keys are (corpus; E-05)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from permission_scene import text_skill

from skillrun.permissions.request import read_request
from skillrun.problem import Severity
from skillrun.skills.strict_yaml import YamlProblem

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "front_matter.jsonl.gz"


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    """Read the rows, with the front matter between the fences."""
    if not CORPUS.is_file():
        pytest.skip("the corpus of real front matter is not beside this checkout")
    with gzip.open(CORPUS, "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    return [
        row | {"front": row["text"].split("\n", 1)[-1].rsplit("---", 1)[0]} for row in found if "text" in row
    ]


def test_rows_with_a_wrong_request_are_errors_at_that_key(rows: list[dict], tmp_path: Path) -> None:
    """Each row that a careful reader finds wrong names its key in an error, and grants nothing."""
    wrong = [row for row in rows if row["expect"].get("reason") == "request_type"]
    assert len(wrong) == 8
    for row in wrong:
        request = read_request(text_skill(row["front"], tmp_path))
        errors = [p for p in request.problems if p.severity is Severity.ERROR]
        assert any(row["expect"]["key"] in p.message for p in errors), row["path"]
        assert all(p.at is not None and p.at.line for p in errors)
        assert request.asked == ()


def test_valid_rows_have_valid_requests(rows: list[dict], tmp_path: Path) -> None:
    """No valid row is turned away because of a key that belongs to somebody else."""
    read = 0
    for row in rows:
        if row["expect"]["class"] != "valid" or row["expect"].get("open"):
            continue
        try:
            skill = text_skill(row["front"].replace("\r", "").lstrip("\ufeff"), tmp_path)
        except YamlProblem:
            continue  # cut apart too simply here, or empty; reading files is another room's test
        request = read_request(skill)
        assert request.valid, (row["path"], request.problems)
        assert request.asked == (), row["path"]
        read += 1
    assert read > 3500
