"""Fixtures of the soak test: the arena of the kill tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "kill"))
from arena import Arena

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    """Give an arena, and end whatever a failed test left in it."""
    made = Arena(tmp_path)
    yield made
    made.clear()
