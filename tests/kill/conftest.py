"""Fixtures of the kill tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from arena import Arena

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    """Give an arena, and end whatever a failed test left in it."""
    made = Arena(tmp_path)
    yield made
    made.clear()
