"""Fixtures of the permission tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from permission_scene import Scene, build

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Make a scene: workspace, skill, home and scratch."""
    return build(tmp_path)
