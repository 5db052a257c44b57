"""What `check` and `lock` write fits the schemas that ship beside the pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from skillrun.check.baseline import baseline_of
from skillrun.check.lock import Lock
from skillrun.report import checking, document

if TYPE_CHECKING:
    from collection import Collection

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"


def fits(text: str | bytes, name: str) -> dict[str, Any]:
    """Check a document with its schema, and give it."""
    data = json.loads(text)
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.validate(data, schema, jsonschema.Draft7Validator)
    return data


@pytest.fixture
def full(collection: Collection) -> Collection:
    """Give a collection with findings of many kinds."""
    collection.skill(
        "demo",
        'fs_read: ["."]\nnetwork: [a.example.com]\nversion: 1\ntimeout: 600 # skillrun: ignore[request-narrowed] ok\n',
    )
    collection.skill(
        "other", "timeout: 2.5\n", {"run.py": "#!/usr/bin/env python3\nimport os\nos.environ['X']\n"}
    )
    collection.skill("linked")
    (collection.folder / "skills" / "linked" / "gone").symlink_to("nowhere")
    return collection


def test_check(full: Collection) -> None:
    """`check --json`."""
    data = fits(document.write(checking.shape(full.report("api"), full.folder)), "check")
    assert len(data["findings"]) > 4
    assert len(data["ignored"]) == 1


def test_lock(full: Collection) -> None:
    """`skillrun.lock`, a list of hosts and a number with a point among the rights."""
    data = fits(Lock(full.folder / "x", {}).with_entries(full.subjects("api")).text(), "skillrun-lock")
    assert data["skills"]["skills/demo"]["rights"]["network"] == ["a.example.com:443"]
    assert data["skills"]["skills/other"]["rights"]["timeout"] == 2.5


def test_baseline(full: Collection) -> None:
    """`skillrun-baseline.json`."""
    assert fits(baseline_of(full.report(), full.folder / "x", ("skills",), None).text(), "skillrun-baseline")[
        "findings"
    ]
