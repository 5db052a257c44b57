from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = 65534


@pytest.fixture
def make_skill(tmp_path: Path) -> Callable[..., Path]:
    """Write a skill: `make_skill("skills/a", front="name: a", scripts={"run.py": "…"})`."""

    def make(
        folder: str | Path,
        front: str | None = None,
        *,
        text: str | None = None,
        scripts: dict[str, str | bytes] | None = None,
    ) -> Path:
        place = tmp_path / folder
        place.mkdir(parents=True, exist_ok=True)
        if front is None:
            front = f"name: {place.name}\ndescription: What it does."
        (place / "SKILL.md").write_text(f"---\n{front}\n---\nBody\n" if text is None else text)
        for name, content in (scripts or {}).items():
            path = place / "scripts" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return place

    return make


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """Give a folder, and the process, to an ordinary user, also when the tests run as root."""
    folder = Path(tempfile.mkdtemp(prefix="skillrun-ordinary-")).resolve()
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            undo.callback(os.seteuid, 0)
            os.seteuid(NOBODY)
        yield folder
