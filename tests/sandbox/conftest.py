"""A folder of an ordinary user's, whom the process is meanwhile: what a closed folder hides is hidden from nobody but such."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attack import SUITE_IS_ROOT, USER_ID

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder of an ordinary user's, whom this process is until the test ends."""
    with tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o755)
        made = Path(top, "folder")
        made.mkdir()
        if SUITE_IS_ROOT:
            os.chown(made, USER_ID, USER_ID)
            os.seteuid(USER_ID)
        try:
            yield made
        finally:
            if SUITE_IS_ROOT:
                os.seteuid(0)
            made.chmod(0o755)
