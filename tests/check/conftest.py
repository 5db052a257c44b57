"""What the tests of checking share."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from collection import Collection

if TYPE_CHECKING:
    from collections.abc import Callable

SNAPSHOTS = Path(__file__).resolve().parent / "snapshots"


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    """Give an empty project."""
    folder, temporary = tmp_path / "home" / "project", tmp_path / "temporary"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    temporary.mkdir()
    return Collection(folder.resolve(), temporary.resolve())


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the file of that name."""

    def compare(name: str, text: str) -> None:
        path = SNAPSHOTS / name
        if request.config.getoption("--update-snapshots", default=False):
            path.write_text(text)
            return
        kept = path.read_text() if path.exists() else ""
        difference = "\n".join(
            difflib.unified_diff(kept.splitlines(), text.splitlines(), name, "now", lineterm="")
        )
        assert text == kept, f"\n{difference}\n\nif this is right: pytest tests/check --update-snapshots"

    return compare
