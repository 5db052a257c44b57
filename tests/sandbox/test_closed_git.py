"""What git would run where folders are closed, or closed for a moment: nothing is taken for absent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from attack import SUITE_IS_ROOT, USER_ID

from skillrun.errors import ConfigError
from skillrun.permissions.project import project_root
from skillrun.permissions.resolve import Resolver
from skillrun.sandbox import search as searching
from skillrun.sandbox.git_obeys import Surroundings, _is_bare, obeyed, obeyed_in
from skillrun.sandbox.search import Search, search, standing_above

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOBODY = Surroundings(None, {})


@pytest.fixture
def folder(folder: Path) -> Iterator[Path]:
    """Give a repository with a closed folder `hidden` that holds another one."""
    (folder / ".git").mkdir()
    (folder / "hidden/hooks").mkdir(parents=True)
    (folder / "hidden").chmod(0o444)
    yield folder
    if SUITE_IS_ROOT:
        os.seteuid(0)
    (folder / "hidden").chmod(0o755)


def named(folder: Path, config: str) -> list[Path]:
    """Return what is named by a repository's settings."""
    (folder / ".git/config").write_text(config)
    return [path for path, _ in obeyed([folder], Search(repositories=(folder / ".git",)), NOBODY).paths]


@pytest.mark.parametrize(
    "config",
    [
        "[core]\nfsmonitor = sh hidden/run\n",
        "[core]\nfsmonitor = python3 hidden\n",
        "[core]\nhooksPath = hidden/hooks\n",
        "[include]\npath = ../hidden/more\n",
        "[alias]\nx = !cd hidden/hooks && ./x\n",
    ],
)
def test_settings_that_name_something_in_a_closed_folder_are_refused(folder: Path, config: str) -> None:
    """Where it leads, or what it says, can't be told."""
    with pytest.raises(ConfigError) as refused:
        named(folder, config)
    assert refused.value.problem.rule == "path-closed"


def test_a_closed_folder_in_the_write_root_is_refused(folder: Path) -> None:
    """It may hold a repository of its own."""
    with pytest.raises(ConfigError):
        obeyed([folder], Search(shut=(folder / "hidden",)), NOBODY)
    assert obeyed([], Search(shut=(folder / "hidden",)), NOBODY).paths == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", ["config", "commondir"])
def test_settings_that_another_user_keeps_to_itself_are_none(folder: Path, name: str) -> None:
    """No script of ours has closed them, and none can open them."""
    (folder / ".git" / name).write_text("x")
    (folder / ".git" / name).chmod(0o600)
    os.seteuid(0)
    os.chown(folder / ".git" / name, USER_ID + 1, USER_ID + 1)
    os.seteuid(USER_ID)
    assert obeyed([folder], Search(repositories=(folder / ".git",)), NOBODY).complete


def test_settings_of_the_users_own_break_no_look_at_what_a_run_left(folder: Path) -> None:
    """After a run a folder that another run has just closed is told of, and no exception."""
    own = folder / "own"
    own.write_text("[core]\nhooksPath = hidden/hooks\n")
    surroundings = Surroundings(None, {"GIT_CONFIG_GLOBAL": str(own)})
    assert obeyed_in([folder], surroundings) == ()


def test_a_folder_that_is_closed_may_be_a_repository(folder: Path) -> None:
    """Above a write root: it may be a bare one, hold a `.git`, and names that are protected."""
    closed = folder / "hidden"
    assert _is_bare(closed)
    assert not _is_bare(folder)
    assert project_root(closed / "hooks") in {folder, closed, *folder.parents}
    (folder / ".git").rmdir()
    assert project_root(closed / "hooks") in {closed, *folder.parents}
    names = [path for path, _ in standing_above([closed / "hooks"])]
    assert closed / ".config/nvim" in names
    assert folder / ".config/nvim" not in names


def test_names_in_a_closed_folder_count(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search is over at its bound, whatever the names are listed for."""
    assert search([folder], frozenset()).complete
    monkeypatch.setattr(searching, "MOST_ENTRIES", 2)
    assert not search([folder], frozenset()).complete


def test_the_folder_is_told_that_hides_where_a_name_leads(folder: Path) -> None:
    """By a name in it, by one further down, by a link to it; and not for what can be told."""
    closed = folder / "hidden"
    (folder / "link").symlink_to("hidden/key")
    (folder / "open").symlink_to("own")
    for text in ("hidden/key", "hidden/a/b/key", "link", "hidden/a/..", "hidden/a/."):
        assert Resolver().shut(f"{folder}/{text}") == closed, text
    for text in ("own", "open", "absent/a", "hidden", "hidden/.."):
        assert Resolver().shut(f"{folder}/{text}") is None, text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_hides_nothing_of_ours(folder: Path) -> None:
    """What is denied in it is denied as it is spelled."""
    os.seteuid(0)
    os.chown(folder / "hidden", USER_ID + 1, USER_ID + 1)
    (folder / "hidden").chmod(0o700)
    os.seteuid(USER_ID)
    assert Resolver().shut(f"{folder}/hidden/key") is None
