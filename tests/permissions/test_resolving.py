# ruff: noqa: PTH112, PTH115, PTH208, D102 - a stand-in for the three calls of `os` that a disk is asked
"""Resolving: physical paths, links followed component by component, nothing through a dangling one (law 5; C-06, C-07, C-12, C-13)."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from skillrun.permissions.place import Place
from skillrun.permissions.resolve import Resolver
from skillrun.permissions.spelled import Relative, Spelled, expand, path_fault
from skillrun.problem import At


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Make a folder with files, folders and links of every kind."""
    root = tmp_path.resolve()
    (root / "w/out/x").mkdir(parents=True)
    (root / "etc/ssl").mkdir(parents=True)
    (root / "w/file").write_text("x")
    (root / "w/link").symlink_to(root / "etc/ssl")
    (root / "w/near").symlink_to("out")
    (root / "w/chain").symlink_to("near/x")
    (root / "w/dangling").symlink_to(root / "etc/new.txt")
    (root / "w/dangling-folder").symlink_to("nowhere/at/all")
    (root / "w/half").symlink_to("dangling/more")
    (root / "w/outer").symlink_to("near/gone")
    (root / "w/loop").symlink_to("loop")
    (root / "w/top").symlink_to("/")
    (root / "w/up").symlink_to("..")
    return root


@pytest.mark.parametrize(
    ("text", "leads_to"),
    [
        ("w/out", "w/out"),
        ("w//out/./x/", "w/out/x"),
        ("w/link", "etc/ssl"),
        ("w/link/..", "etc"),
        ("w/near/x/..", "w/out"),
        ("w/chain", "w/out/x"),
        ("w/chain/new/deep", "w/out/x/new/deep"),
        ("w/new/../out", "w/out"),
        ("w/new/deep/../../..", "."),
        ("w/out/../..", "."),
        ("w/up/etc", "etc"),
        ("w/file", "w/file"),
        ("../" * 40 + "..", "/"),
        ("w/top", "/"),
    ],
)
def test_a_path_is_followed_as_the_kernel_does(top: Path, text: str, leads_to: str) -> None:
    """`..` after a link goes up from the target; a missing tail hangs on its deepest existing parent."""
    resolved = Resolver().follow(f"{top}/{text}")
    assert resolved.fault is None
    assert resolved.path == (top / leads_to if leads_to != "." else top)
    assert resolved.exists == os.path.lexists(resolved.path)
    assert resolved.is_dir == resolved.path.is_dir()
    if resolved.exists:
        assert str(resolved.path) == os.path.realpath(f"{top}/{text}")


@pytest.mark.parametrize(
    "text",
    [
        "w/dangling",
        "w/dangling/x",
        "w/dangling-folder",
        "w/half",
        "w/outer",
        "w/outer/x",
        "w/loop",
        "w/file/x",
        "w/file/..",
        "w/loop/x",
    ],
)
def test_what_leads_nowhere_has_a_fault(top: Path, text: str) -> None:
    """A dangling link, a loop, and a file used as a folder are no paths: a write could make the target elsewhere (C-13)."""
    resolved = Resolver().follow(f"{top}/{text}")
    assert resolved.fault
    assert not resolved.exists
    assert not (top / "etc/new.txt").exists()


def test_a_long_chain_of_links_is_a_fault(top: Path) -> None:
    """As many links as the kernel refuses are refused; fewer are followed."""
    (top / "l0").symlink_to("w")
    for i in range(60):
        (top / f"l{i + 1}").symlink_to(f"l{i}")
    assert Resolver().follow(f"{top}/l30").path == top / "w"
    assert "links" in (Resolver().follow(f"{top}/l60").fault or "")


def test_links_on_the_way_are_told(top: Path) -> None:
    """Every link node that was followed is listed, since a script opens the spelling and not the target."""
    assert Resolver().follow(f"{top}/w/chain").links == (top / "w/chain", top / "w/near")


def test_a_folder_that_cannot_be_looked_into_is_a_fault(top: Path) -> None:
    """What cannot be looked up is not taken for missing."""

    class Closed:
        lstat = staticmethod(lambda _path: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))

    assert "Permission denied" in (Resolver(disk=Closed()).follow(f"{top}/w/x").fault or "")
    assert Resolver().follow(f"{top}/" + "n" * 300).fault


class FoldingDisk:
    """The host's file system as a volume that ignores letter case and Unicode form: names are found by their fold."""

    def _real(self, path: str) -> str:
        here = ""
        for part in path.strip("/").split("/"):
            names = os.listdir(here or "/") if os.path.isdir(here or "/") else []
            wanted = self._fold(part)
            here += "/" + next((name for name in names if self._fold(name) == wanted), part)
        return here

    def _fold(self, name: str) -> str:
        return unicodedata.normalize("NFC", name).casefold()

    def lstat(self, path: str) -> os.stat_result:
        return os.lstat(self._real(path))

    def readlink(self, path: str) -> str:
        return os.readlink(self._real(path))

    def listdir(self, path: str) -> list[str]:
        return os.listdir(self._real(path))


def test_letter_case_and_unicode_form_where_they_do_not_count(top: Path) -> None:
    """On a volume that folds names, another spelling is the same path; on this one the two stay apart (C-12)."""
    composed, decomposed = unicodedata.normalize("NFC", "café"), unicodedata.normalize("NFD", "café")
    (top / "w/.ssh").mkdir()
    (top / "w" / composed).mkdir()
    folding = Resolver(disk=FoldingDisk())
    assert folding.follow(f"{top}/w/.SSH").path == top / "w/.ssh"
    assert folding.follow(f"{top}/W/{decomposed}").path == top / "w" / composed
    assert folding.folds(top / "w")
    assert Resolver().follow(f"{top}/w/.SSH").path == top / "w/.SSH"
    assert not Resolver().follow(f"{top}/w/.SSH").exists
    assert not Resolver().folds(top / "w")


def test_unicode_form_where_only_letter_case_counts(top: Path) -> None:
    """A volume may fold the form and keep the case, as APFS made case-sensitive does: the stored spelling is the path."""

    class FoldingForms(FoldingDisk):
        def _fold(self, name: str) -> str:
            return unicodedata.normalize("NFC", name)

    composed, decomposed = unicodedata.normalize("NFC", "café"), unicodedata.normalize("NFD", "café")
    (top / "w" / composed).mkdir()
    (top / "out").mkdir(exist_ok=True)
    (top / "out" / decomposed).mkdir()
    folding = Resolver(disk=FoldingForms())
    assert folding.follow(f"{top}/w/{decomposed}").path == top / "w" / composed
    assert folding.follow(f"{top}/out/{composed}").path == top / "out" / decomposed
    assert not folding.follow(f"{top}/W/{composed}").exists


def test_two_hard_links_keep_their_own_names(top: Path) -> None:
    """`A` and `a` may be one file where case does count; a listing tells it from a folding volume."""
    (top / "w/A").write_text("x")
    os.link(top / "w/A", top / "w/a")
    assert Resolver().follow(f"{top}/w/a").path == top / "w/a"
    assert Resolver().follow(f"{top}/w/A").path == top / "w/A"


def test_one_resolver_gives_one_picture(top: Path) -> None:
    """A component that was seen is not looked up a second time: a swap in between changes nothing (law 5)."""
    resolver = Resolver()
    before = resolver.follow(f"{top}/w/out")
    (top / "w/out/x").rmdir()
    (top / "w/out").rmdir()
    (top / "w/out").symlink_to("/etc")
    assert resolver.follow(f"{top}/w/out/y").path == before.path / "y"
    assert Resolver().follow(f"{top}/w/out").path == Path("/etc")


def test_the_leaf_is_the_node_and_what_it_leads_to(top: Path) -> None:
    """All but the last component is followed; a link is told apart from its target."""
    assert Resolver().leaf(f"{top}/w/link") == (top / "w/link", top / "etc/ssl")
    assert Resolver().leaf(f"{top}/w/near/x") == (top / "w/out/x", None)
    assert Resolver().leaf(f"{top}/w/none/") == (top / "w/none", None)
    assert Resolver().leaf(f"{top}/w/none/deep") == (top / "w/none/deep", None)


def test_variables_are_expanded_once() -> None:
    """The three variables and `~/` come from the place; what they hold is not expanded again."""
    place = Place(Path("/w"), Path("/s"), Path("/t"), Path("/h/~${skill}"))
    at = At(flag="x")

    def text(path: str, base: object = Relative.CWD) -> str:
        return expand(Spelled(path, at, base), place, Path("/cwd"))

    assert text("${workspace}/a") == "/w/a"
    assert text("${skill}") == "/s"
    assert text("${scratch}/x") == "/t/x"
    assert text("~/a") == "/h/~${skill}/a"
    assert text("a/b") == "/cwd/a/b"
    assert text("a", Path("/file/folder")) == "/file/folder/a"
    assert text("/a") == "/a"
    with pytest.raises(ValueError, match="home"):
        expand(Spelled("~/a", at), Place(Path("/w"), Path("/s"), Path("/t")), Path("/w"))


def test_relative_paths_can_be_forbidden() -> None:
    """In a file that belongs to no folder a relative path is a fault, variables and absolute ones are not."""
    assert path_fault("data", Relative.FORBIDDEN)
    assert path_fault("./data", Relative.FORBIDDEN)
    assert path_fault("${workspace}/data", Relative.FORBIDDEN) is None
    assert path_fault("~/x", Relative.FORBIDDEN) is None


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("out", True),
        ("out/", True),
        ("a.txt", False),
        ("a.txt/", True),
        (".claude", True),
        (".claude/", True),
        ("a.d/b", True),
    ],
)
def test_a_spelling_says_folder_or_file(text: str, *, folder: bool) -> None:
    """A suffix without a trailing slash says file; a leading dot is no suffix (facts/adoption 6)."""
    assert Spelled(text, At(flag="x")).folder is folder


def test_a_mode_that_is_neither_file_nor_folder_exists(top: Path) -> None:
    """A FIFO is there and is no folder; nothing is opened to find out."""
    os.mkfifo(top / "w/pipe")
    resolved = Resolver().follow(f"{top}/w/pipe")
    assert (resolved.exists, resolved.is_dir, resolved.fault) == (True, False, None)
