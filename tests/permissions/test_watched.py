"""Watched: what a disk was asked and answered, and whether it would answer the same again."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from skillrun.permissions.resolve import HostDisk, Resolver
from skillrun.permissions.watched import Watched

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def asked(path: Path) -> Watched:
    """Follow a path, and list the folder above it."""
    watched = Watched()
    Resolver(watched).follow(str(path))
    watched.listdir(str(path.parent))
    return watched


def swap(path: Path, target: Path) -> None:
    """Put a link where something was."""
    path.rename(path.with_name("aside"))
    path.symlink_to(target)


CHANGES: dict[str, Callable[[Path], object]] = {
    "file appears": lambda top: (top / "a/new").write_text(""),
    "file goes": lambda top: (top / "a/file").unlink(),
    "file is exchanged": lambda top: (
        (top / "a/b").write_text("x"),
        (top / "a/b").replace(top / "a/file"),
    ),
    "folder is exchanged": lambda top: (
        (top / "a").rename(top / "z"),
        (top / "z/y").mkdir(),
        (top / "a").mkdir(),
    ),
    "folder becomes a link": lambda top: swap(top / "a", top / "other"),
    "mode": lambda top: (top / "a/file").chmod(0o600),
}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_another_owner_is_a_change(tmp_path: Path) -> None:
    """Who owns a folder that can't be looked into decides whether anything is granted at all."""
    (tmp_path / "file").write_text("here")
    watched = asked(tmp_path / "file")
    os.chown(tmp_path / "file", 12345, -1)
    assert not watched.unchanged()


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(tmp_path: Path, change: str) -> None:
    """Whatever another decision could come from: a name that appears or goes, another file, a link, a mode."""
    (tmp_path / "a").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "a/file").write_text("here")
    watched = asked(tmp_path / "a/file")
    assert watched.unchanged()
    CHANGES[change](tmp_path)
    assert not watched.unchanged()


def test_a_link_that_leads_elsewhere_is_seen(tmp_path: Path) -> None:
    """A link with another target is another answer, where the link itself has the same number as well."""
    answers = {"/l": "/one"}

    class Linked(HostDisk):
        @staticmethod
        def lstat(path: str) -> os.stat_result:
            return os.lstat(tmp_path / "link" if path == "/l" else path)

        @staticmethod
        def readlink(path: str) -> str:
            return answers[path]

    (tmp_path / "link").symlink_to("one")
    watched = Watched(Linked())
    Resolver(watched).follow("/l/x")
    assert watched.unchanged()
    answers["/l"] = "/two"
    assert not watched.unchanged()


def test_the_same_number_on_another_disk_is_seen(tmp_path: Path) -> None:
    """A number names a file of one device only."""
    devices = [0]

    class Mounted(HostDisk):
        @staticmethod
        def lstat(path: str) -> os.stat_result:
            found = list(os.lstat(path))
            found[2] += devices[0]
            return os.stat_result(found)

    watched = Watched(Mounted())
    Resolver(watched).follow(str(tmp_path))
    assert watched.unchanged()
    devices[0] = 1
    assert not watched.unchanged()


def test_what_no_decision_reads_is_no_change(tmp_path: Path) -> None:
    """The content of a file, and the times of a folder, decide nothing."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").write_text("here")
    watched = asked(tmp_path / "a/file")
    (tmp_path / "a/file").write_text("other words")
    os.utime(tmp_path / "a", (0, 0))
    assert watched.unchanged()


class Failing(HostDisk):
    """A disk on which one path can't be looked up."""

    number = errno.EACCES
    calls = 0

    def lstat(self, path: str) -> os.stat_result:  # type: ignore[override]
        """As `os.lstat`, but for one path."""
        type(self).calls += 1
        if path == "/kept":
            raise OSError(self.number, os.strerror(self.number), path)
        return os.lstat(path)


def test_another_reason_for_a_failure_is_seen() -> None:
    """A path that can't be looked up is told apart by why: the reason is in the grant's words."""
    disk = Failing()
    watched = Watched(disk)
    assert Resolver(watched).follow("/kept/x").fault
    assert watched.unchanged()
    disk.number = errno.EIO
    assert not watched.unchanged()
    disk.number = errno.ENOENT
    assert not watched.unchanged()


def test_no_name_is_taken_for_a_failure(tmp_path: Path) -> None:
    """A link that can't be read is another answer than one that leads to a file called as that failure is."""
    (tmp_path / "link").symlink_to("No such file or directory")
    watched = Watched()
    with pytest.raises(FileNotFoundError):
        watched.readlink(str(tmp_path / "gone"))
    (tmp_path / "link").rename(tmp_path / "gone")
    assert not watched.unchanged()


def test_two_answers_to_one_question_are_never_the_same_again(tmp_path: Path) -> None:
    """A decision that saw a path change while it was made is made anew, also when the disk is as it was then."""
    path = tmp_path / "file"
    path.write_text("")
    watched = Watched()
    watched.lstat(str(path))
    path.rename(tmp_path / "aside")
    with pytest.raises(FileNotFoundError):
        watched.lstat(str(path))
    assert not watched.unchanged()
    (tmp_path / "aside").rename(path)
    assert not watched.unchanged()
    watched.lstat(str(path))
    assert not watched.unchanged()


def test_it_is_asked_and_answers_as_the_disk_does(tmp_path: Path) -> None:
    """Answers and failures come through unchanged, and what was asked is known by its path."""
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("file")
    watched = Watched()
    assert watched.lstat(str(tmp_path / "file")).st_ino == (tmp_path / "file").stat().st_ino
    assert watched.readlink(str(tmp_path / "link")) == "file"
    assert sorted(watched.listdir(str(tmp_path))) == ["file", "link"]
    with pytest.raises(OSError, match="Invalid argument"):
        watched.readlink(str(tmp_path / "file"))
    with pytest.raises(ValueError, match="null"):
        watched.lstat("a\0b")
    assert watched.saw(str(tmp_path / "file"))
    assert not watched.saw(str(tmp_path / "link"))
    assert watched.unchanged()
