"""The test vectors for Seatbelt's language, which lie beside the repository on the project's machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).resolve().parents[3] / "shared" / "vectors" / "sbpl.jsonl"
_GIVEN = {
    "vnode_type": "vnode-type",
    "file_mode": "file-mode",
    "extensions": "extension",
    "protocol": "socket-protocol",
}


def undisputed() -> list[Any]:
    """Give the vectors that sources agree about, each as a parameter named after it."""
    if not FILE.exists():
        return [
            pytest.param(
                None, marks=pytest.mark.skip(reason="the vectors lie beside the repository, not here")
            )
        ]
    rows = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    return [pytest.param(row, id=row["id"]) for row in rows if not row["disputed"]]


def given(row: dict[str, Any]) -> dict[str, Any]:
    """Return what a vector says beside its target."""
    return {_GIVEN.get(key, key): value for key, value in row["context"].items()}
