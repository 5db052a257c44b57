"""The shared folder of all scratch folders, made and removed by many runners at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from skillrun.launch.root import make_root, shared_root

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("when", ["before it is looked at", "before it is used"])
def test_another_runner_removes_the_shared_folder_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """It was there a moment ago and is gone: the own folder still comes to lie in it, where one rule hides it."""
    shared = shared_root(tmp_path)
    mkdir, lstat, seen = os.mkdir, os.lstat, [0]

    def late_mkdir(path: str | os.PathLike[str], *arguments: int, **named: int) -> None:
        if os.fspath(path) == os.fspath(shared) and not seen[0]:
            seen[0] += 1
            raise FileExistsError(17, "it was there", os.fspath(path))
        mkdir(path, *arguments, **named)

    def late_lstat(path: str | os.PathLike[str], **named: int) -> os.stat_result:
        found = lstat(path, **named)
        if os.fspath(path) == os.fspath(shared) and not seen[0]:
            seen[0] += 1
            shared.rmdir()
        return found

    if when == "before it is looked at":
        monkeypatch.setattr(os, "mkdir", late_mkdir)
    else:
        monkeypatch.setattr(type(shared), "lstat", late_lstat)
    made = make_root(tmp_path)
    assert seen == [1]
    assert os.path.dirname(made) == os.fspath(shared)  # noqa: PTH120 - text, as it is returned


def test_somebody_else_holds_the_name(tmp_path: Path) -> None:
    """In a folder that everybody writes the name can be taken: the own folder is made beside it."""
    shared_root(tmp_path).write_text("mine")
    made = make_root(tmp_path)
    assert os.path.dirname(made) == os.fspath(tmp_path)  # noqa: PTH120 - text, as it is returned
