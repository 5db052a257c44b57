"""The workspace rule: never the root, a home, above a home, or the system (DESIGN 2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillrun.errors import UsageError
from skillrun.permissions.workspace import check_workspace


def refused(path: Path, home: Path | None = None, **more: object) -> str:
    """Check a workspace that must be refused; return the message."""
    with pytest.raises(UsageError) as caught:
        check_workspace(path, home=home, **more)
    assert caught.value.problem.rule == "workspace-refused"
    assert str(path.resolve()) in caught.value.problem.message
    return caught.value.problem.message


@pytest.mark.parametrize(
    "path",
    ["/", "/etc", "/usr", "/usr/bin", "/etc/..", "/tmp", "/dev", "/proc/self", "/home", "/root", "/var"],
)
def test_system_folders_are_refused(path: str) -> None:
    """The root, the system's folders with what is in them, and folders of everybody."""
    refused(Path(path))


def test_a_home_and_what_is_above_it_are_refused(tmp_path: Path) -> None:
    """The caller's home, each folder above it, and a link to it; a folder in it is fine."""
    home = tmp_path / "people" / "me"
    (home / "project").mkdir(parents=True)
    (tmp_path / "link").symlink_to(home)
    assert "home folder" in refused(home, home)
    assert "home folder" in refused(tmp_path / "link", home)
    assert "above" in refused(tmp_path / "people", home)
    assert "above" in refused(tmp_path, home)
    assert check_workspace(home / "project", home=home) == (home / "project").resolve()
    assert check_workspace(home, home=None) == home.resolve()


def test_a_home_that_is_a_link_is_a_home(tmp_path: Path) -> None:
    """`home` is compared as a physical folder."""
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to("real")
    refused(tmp_path / "real", tmp_path / "home")


def test_the_operator_can_allow_exactly_one_folder(tmp_path: Path) -> None:
    """What `workspaces` lists is let through, and nothing beside or above it."""
    home = tmp_path / "me"
    home.mkdir()
    assert check_workspace(home, home=home, allowed=(home.resolve(),)) == home.resolve()
    refused(tmp_path, home, allowed=(home.resolve(),))
    refused(Path("/etc"), home, allowed=(Path("/"),))


def test_the_result_is_physical(tmp_path: Path) -> None:
    """A workspace reached by a link is its target."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert check_workspace(tmp_path / "link", home=None) == (tmp_path / "real").resolve()


def test_a_workspace_is_a_folder_that_exists(tmp_path: Path) -> None:
    """A missing folder and a file are usage errors of their own."""
    (tmp_path / "file").write_text("")
    for name in ("missing", "file", "file/x"):
        with pytest.raises(UsageError) as caught:
            check_workspace(tmp_path / name, home=None)
        assert caught.value.problem.rule == "workspace-missing"
