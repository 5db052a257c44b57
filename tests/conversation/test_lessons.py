"""Each of the 33 lessons has a test that is there, or a reason; and the one that is about file systems."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from lessons import LESSONS

from skillrun.conversation.disk import syncs_well
from skillrun.conversation.messages import Said
from skillrun.conversation.sqlite import SqliteStore

TESTS = Path(__file__).resolve().parent.parent


def test_every_lesson_is_held_by_a_test_or_has_a_reason() -> None:
    """All 33 are there, and none is without one of the two."""
    assert list(LESSONS) == list(range(1, 34))
    assert [number for number, one in LESSONS.items() if not (one.tests or one.reason)] == []


def test_the_tests_that_lessons_name_are_there() -> None:
    """A test that was renamed or removed leaves no lesson behind that only seems to be held."""
    known: dict[str, set[str]] = {}
    for lesson in LESSONS.values():
        for one in lesson.tests:
            file, _, name = one.partition("::")
            if file not in known:
                tree = ast.parse((TESTS / file).read_text())
                known[file] = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            assert name in known[file], one
            assert name.startswith("test_")


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("ext4", "wal"), ("tmpfs", "wal"), ("overlay", "wal"), ("virtiofs", "truncate"), ("nfs4", "truncate"),
     ("fuse.sshfs", "truncate"), ("9p", "truncate")],
)  # fmt: skip
def test_a_log_is_written_ahead_only_on_a_disk_of_this_machine(
    file: Path, monkeypatch: pytest.MonkeyPatch, kind: str, mode: str
) -> None:
    """Shared and passed-through file systems get the old journal: a log there was malformed within a minute (lesson 31)."""

    def partitions(**_: Any) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(mountpoint="/", fstype="ext4"),
            SimpleNamespace(mountpoint=str(file.parent.parent), fstype=kind),
            SimpleNamespace(mountpoint=str(file.parent.parent) + "-beside", fstype="nfs"),
        ]

    monkeypatch.setattr(psutil, "disk_partitions", partitions)
    assert syncs_well(file) == (mode == "wal")
    store = SqliteStore(file)
    assert store.append("a", 0, Said("x"))
    assert store._database().execute("PRAGMA journal_mode").fetchone() == (mode,)
    store.close()
    assert len(SqliteStore(file).messages("a")) == 1
