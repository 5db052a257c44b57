"""Baselines: keyed to what was found, never from a partial scan, stale entries reported (cases E-07 to E-09)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from skillrun.check.baseline import FILE_NAME, Baseline, apply, baseline_of, read_baseline
from skillrun.check.store import write_store
from skillrun.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from collection import Collection

    from skillrun.check.engine import Report

ROOTS = ("skills",)


def baseline(collection: Collection) -> Baseline:
    """Accept everything that is found."""
    return baseline_of(collection.report(), collection.folder / FILE_NAME, ROOTS, None)


def new(collection: Collection, accepted: Baseline) -> Report:
    """Check against a baseline that went over the disk."""
    write_store(accepted.path, accepted.text())
    known = read_baseline(accepted.path)
    assert known == accepted
    return apply(collection.report(), known, ROOTS)


def test_lines_do_not_matter(collection: Collection) -> None:
    """E-07: lines and keys above a known finding don't make it new."""
    collection.skill("demo", 'fs_read: ["/etc"]\n')
    accepted = baseline(collection)
    collection.skill("demo", '# a comment\n\n\nlicense: MIT\nfs_read:\n  - "/etc"\n')
    report = new(collection, accepted)
    assert [one.rule for one in report.findings] == []
    assert [one.rule for one in report.accepted] == ["request-refused"]


@pytest.mark.parametrize(
    ("front", "count"),
    [
        ('fs_write: ["./out", "/"]\n', 2),  # a wider one beside it: refused, and broad
        ('fs_write: ["./out", "./out"]\n', 0),  # the same one twice is the same one
        ('fs_write: ["./out"]\ntimeout: 600\n', 1),
    ],
)
def test_another_value_is_new(collection: Collection, front: str, count: int) -> None:
    """E-08: the value is part of what is accepted; a second equal one is not."""
    collection.skill("demo", 'fs_write: ["./out"]\n')
    accepted = baseline(collection)
    collection.skill("demo", front)
    assert len(new(collection, accepted).findings) == count


def test_another_skill_is_new(collection: Collection) -> None:
    """E-08: the same request in another skill has not been accepted."""
    collection.skill("demo", 'fs_write: ["./out"]\n')
    accepted = baseline(collection)
    collection.skill("other", 'fs_write: ["./out"]\n')
    assert [one.skill for one in new(collection, accepted).findings] == ["skills/other"]


def test_another_timeout_is_new(collection: Collection) -> None:
    """E-08: 600 seconds were not accepted with 100."""
    collection.skill("demo", "timeout: 100\n")
    accepted = baseline(collection)
    collection.skill("demo", "timeout: 600\n")
    assert [one.rule for one in new(collection, accepted).findings] == ["baseline-stale", "request-narrowed"]


def test_what_is_gone_is_reported(collection: Collection) -> None:
    """An entry that nothing matches is a finding, which no baseline hides."""
    collection.skill("demo", "timeout: 600\n")
    accepted = baseline(collection)
    collection.skill("demo", "timeout: 6\n")
    report = new(collection, accepted)
    assert [(one.rule, one.hideable) for one in report.findings] == [("baseline-stale", False)]


def test_never_from_a_partial_scan(collection: Collection) -> None:
    """E-09: nothing is written while a skill can't be read, or for other roots than those on file."""
    collection.skill("demo", "timeout: 600\n")
    whole = baseline(collection)
    with pytest.raises(UsageError, match="other roots"):
        baseline_of(collection.report(), whole.path, ("skills/demo",), whole)
    collection.write("skills/broken/SKILL.md", "no front matter")
    with pytest.raises(UsageError, match="skills/broken"):
        baseline(collection)


def test_stale_only_for_the_same_roots(collection: Collection) -> None:
    """A scan of other roots doesn't call entries stale that it did not look for."""
    collection.skill("demo", "timeout: 600\n")
    accepted = baseline(collection)
    collection.skill("demo", "timeout: 6\n")
    assert apply(collection.report(), accepted, ("skills/other",)).findings == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"schema": "skillrun.baseline/2", "roots": [], "findings": []}',
        '{"schema": "skillrun.baseline/1"}',
        '{"schema": "skillrun.baseline/1", "schema": "skillrun.baseline/1", "roots": [], "findings": []}',
        '{"schema": "skillrun.baseline/1", "roots": [], "findings": [{"fingerprint": 1}]}',
        "[" * 100_000,
        '{"schema": NaN}',
    ],
)
def test_damaged_is_an_error(collection: Collection, text: str) -> None:
    """A baseline that is not one, or of another version, is a configuration error and never an empty one."""
    path = collection.write(FILE_NAME, text)
    with pytest.raises(ConfigError):
        read_baseline(path)


def test_an_entry_says_what_it_hides(collection: Collection) -> None:
    """An entry whose words and fingerprint differ would show one thing to a reviewer and hide another."""
    collection.skill("demo", "timeout: 600\n")
    accepted = baseline(collection)
    data = json.loads(accepted.text())
    data["findings"][0]["what"] = ["timeout", "61"]
    path = collection.write(FILE_NAME, json.dumps(data))
    with pytest.raises(ConfigError, match="own words"):
        read_baseline(path)


def test_a_link_is_not_read(collection: Collection, tmp_path: Path) -> None:
    """A baseline that is a link would let a clone choose a file elsewhere."""
    other = tmp_path / "other.json"
    other.write_text('{"schema": "skillrun.baseline/1", "roots": [], "findings": []}')
    (collection.folder / FILE_NAME).symlink_to(other)
    with pytest.raises(ConfigError):
        read_baseline(collection.folder / FILE_NAME)


def test_replaced_as_a_whole(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed while writing, the old file is still there and nothing else is left."""
    path = collection.write(FILE_NAME, "old")

    def killed(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        write_store(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in collection.folder.iterdir()] == [FILE_NAME]
