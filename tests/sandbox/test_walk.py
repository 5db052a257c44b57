"""Walking to paths: however deep and however many, what is there is seen."""

from __future__ import annotations

import os
import pickle
import resource
from pathlib import Path

import pytest
from attack import USER_ID

from skillrun.check.held import _lock_of
from skillrun.confine.landlock import ChangedError
from skillrun.confine.world import World, check_covers
from skillrun.errors import ConfigError
from skillrun.permissions.closed import ClosedError, is_ours, may_be
from skillrun.sandbox.git_obeys import Surroundings, obeyed
from skillrun.sandbox.search import Search, search
from skillrun.sandbox.walk import Walker, is_folder, link_nodes


def test_a_deep_folder_is_reached(tmp_path: Path) -> None:
    """A script can make folders deeper than Python calls functions; looking at one does not end the run."""
    deep = [tmp_path]
    for _ in range(1_200):
        deep.append(deep[-1] / "a")
        deep[-1].mkdir()
    with Walker() as walker:
        assert walker.look(deep[-1] / "x") is None
        assert walker.look(deep[-1]) is not None
    for folder in reversed(deep[1:]):
        folder.rmdir()


def test_more_folders_than_descriptors_are_all_seen(tmp_path: Path) -> None:
    """What can't be opened for want of descriptors must not look absent: it would be left unprotected."""
    places = [tmp_path / f"{number}/.vscode" for number in range(300)]
    for place in places:
        place.mkdir(parents=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with Walker() as walker:
            assert all(walker.look(place) is not None for place in places)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_want_of_descriptors_is_no_absence(tmp_path: Path) -> None:
    """With no descriptor left the walk fails, and does not say that nothing is there."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with Walker() as walker, pytest.raises(OSError, match="Too many open files"):
            walker.look(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_every_link_on_the_way_is_named(tmp_path: Path) -> None:
    """Links to links, up and absolute ones, and one that leads in a circle."""
    (tmp_path / "real/in").mkdir(parents=True)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/b").symlink_to("../real")
    (tmp_path / "a").symlink_to(tmp_path / "deep/./b")
    assert link_nodes(tmp_path / "a/in") == ([tmp_path / "a", tmp_path / "deep/b"], tmp_path / "real/in")
    (tmp_path / "c").symlink_to("c")
    nodes, end = link_nodes(tmp_path / "c")
    assert tmp_path / "c" in nodes
    assert end is None, "a circle ends nowhere, and above all not in the folder that it lies in"


@pytest.mark.parametrize("links", [39, 40, 41])
def test_as_many_links_are_followed_as_the_kernel_follows(tmp_path: Path, links: int) -> None:
    """A file behind the longest chain that works is found, or it could be written through it; one link more leads nowhere."""
    (tmp_path / "end").write_text("x")
    for number in range(links):
        (tmp_path / str(number)).symlink_to("end" if number == links - 1 else str(number + 1))
    nodes, end = link_nodes(tmp_path / "0")
    try:
        (tmp_path / "0").read_text()
    except OSError:
        assert end is None
    else:
        assert (len(nodes), end) == (links, tmp_path / "end")


def test_what_lies_in_a_closed_folder_is_not_absent(folder: Path) -> None:
    """Without the right to search a folder nothing can be said of what is in it; it is ours to open again, or not."""
    (folder / "file").write_text("x")
    (folder / "deep").mkdir()
    folder.chmod(0o644)
    with Walker() as walker:
        for path in (folder / "file", folder / "absent", folder / "deep/file", folder / "deep"):
            with pytest.raises(ClosedError) as closed:
                walker.look(path)
            assert (closed.value.folder, closed.value.ours) == (folder, True)
        assert walker.look(folder) is not None
        assert walker.look(folder.with_name("absent")) is None
        with pytest.raises(ClosedError):
            walker.folder(str(folder / "deep"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_a_closed_folder_of_another_user_is_not_ours(folder: Path) -> None:
    """What no script of our user can have closed is told apart."""
    os.seteuid(0)
    folder.chmod(0o700)
    os.chown(folder, USER_ID + 1, USER_ID + 1)
    os.seteuid(USER_ID)
    with Walker() as walker, pytest.raises(ClosedError) as closed:
        walker.look(folder / "file")
    assert (closed.value.folder, closed.value.ours) == (folder, False)
    os.seteuid(0)


@pytest.mark.parametrize(
    ("mode", "bases", "doors"), [(0o755, 1, 0), (0o444, 1, 1), (0o311, 0, 1), (0o000, 0, 1)]
)
@pytest.mark.parametrize("empty", [True, False])
def test_a_closed_folder_is_a_door(folder: Path, mode: int, bases: int, doors: int, *, empty: bool) -> None:
    """A search names a folder that can't be listed, or not looked into, with what of its names could be told."""
    inner = folder / "inner"
    inner.mkdir()
    if not empty:
        (inner / ".envrc").write_text("x")
        (inner / "SKILL.md").write_text("x")
    inner.chmod(mode)
    found = search([folder, folder / "absent", Path("/etc/hostname")], frozenset({".envrc"}))
    inner.chmod(0o755)
    told = bases and not empty
    assert found.bases == ((inner,) if told else ())
    assert found.skills == ((inner,) if told else ())
    assert [door for door, _ in found.doors] == [inner] * doors
    assert found.shut == (inner,) * doors
    assert found.complete


def test_links_behind_a_closed_folder_are_not_told(folder: Path) -> None:
    """Where a link leads can't be told any more when its folder is closed between two looks."""
    (folder / "link").symlink_to("target")
    folder.chmod(0o444)
    with pytest.raises(ClosedError) as closed:
        link_nodes(folder / "link")
    assert closed.value.ours


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_links_behind_somebody_elses_closed_folder_are_none(folder: Path) -> None:
    """What no script can have closed is as it is spelled: it is of no use to a script either."""
    os.seteuid(0)
    os.chown(folder, USER_ID + 1, USER_ID + 1)
    folder.chmod(0o700)
    os.seteuid(USER_ID)
    assert link_nodes(folder / "link/file") == ([], folder / "link/file")


def test_what_may_be_in_a_closed_folder(folder: Path) -> None:
    """Nothing is absent that can't be looked at."""
    assert not may_be(str(folder / "a"))
    assert not may_be(str(folder / "a/b"))
    assert is_folder(str(folder))
    assert not is_folder(str(folder / "a"))
    assert not is_folder(str(folder / ("a" * 300)))
    folder.chmod(0o644)
    assert may_be(str(folder / "a"))
    assert may_be(str(folder))
    with pytest.raises(ClosedError):
        is_folder(str(folder / "a"))
    assert is_ours(str(folder / "a/b/c"))
    assert not is_ours("/etc/hostname")
    assert not is_ours(str(folder.with_name("absent")))


@pytest.mark.parametrize("closed", ["commondir", ".git"])
def test_a_repository_whose_common_folder_cannot_be_told(folder: Path, closed: str) -> None:
    """Which settings hold in a repository is in a file that may be closed for a moment: nothing is taken for absent."""
    git = folder / ".git"
    git.mkdir()
    (git / "config").write_text("")
    (git / "commondir").write_text("../other")
    (git / closed if closed == "commondir" else git).chmod(0)
    found = Search(repositories=(git,))
    with pytest.raises(ConfigError) as refused:
        obeyed([folder], found, Surroundings(None, {}))
    git.chmod(0o755)
    assert refused.value.problem.rule == "path-closed"


def test_a_cover_that_a_closed_folder_hides_is_not_taken_for_one(folder: Path) -> None:
    """What a world covers must be seen to be covered; only below what it hides itself there is nothing to see."""
    (folder / "file").write_text("x")
    found = (folder / "file").lstat()
    entry = [str(folder / "file"), "deny", found.st_dev, found.st_ino + 1]
    check_covers([entry])
    folder.chmod(0o444)
    with pytest.raises(ChangedError):
        check_covers([entry])
    above = folder.lstat()
    check_covers([[str(folder), "deny", above.st_dev, above.st_ino + 1], entry])


def test_what_can_not_be_told_is_not_left_uncovered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is left alone that is not there in the new root, and not one that a closed folder hides."""
    monkeypatch.chdir(folder)
    (folder / "sub").mkdir()
    bare = object.__new__(World)
    bare._deny("/sub/absent", os.open("/", os.O_PATH))
    (folder / "sub").chmod(0o444)
    with pytest.raises(PermissionError):
        bare._deny("/sub/absent", os.open("/", os.O_PATH))
    (folder / "sub").chmod(0o755)


def test_a_lock_in_a_closed_folder_is_not_passed_over(folder: Path) -> None:
    """The nearest lock counts, also one that can't be told; an outer one may approve more."""
    (folder / "inner/skill").mkdir(parents=True)
    (folder / "skillrun.lock").write_text("{}")
    assert _lock_of(folder / "inner/skill") == folder / "skillrun.lock"
    (folder / "inner").chmod(0o444)
    found = _lock_of(folder / "inner/skill")
    (folder / "inner").chmod(0o755)
    assert found == folder / "inner/skill/skillrun.lock"


def test_a_closed_folder_is_told_by_a_worker_as_by_the_runner() -> None:
    """Many runs are made in other processes too: what stopped one comes back as what a caller knows."""
    closed = ClosedError(Path("/a/b"), ours=True)
    told = pickle.loads(pickle.dumps(closed))
    assert (type(told), told.problems) == (ConfigError, closed.problems)
    assert told.problem.rule == "path-closed"
