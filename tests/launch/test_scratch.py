"""Scratch folders go away whatever a script made of them, and nothing else does."""

from __future__ import annotations

import os
import stat
import sys
import traceback
from typing import TYPE_CHECKING

import pytest
from arena import MODES, scratches

import skillrun.launch.scratches
from skillrun.confine.trees import remove
from skillrun.errors import ConfigError
from skillrun.launch.scratch import make_missing, make_scratch, remove_scratch, remove_untouched

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from arena import Arena

USERS = [pytest.param(0, id="root"), pytest.param(12345, id="user")]


def as_user(user: int, work: Callable[[], None]) -> None:
    """Do work in a child as root or as an ordinary user; it passes when it raises nothing."""
    if user == 0 and os.getuid() != 0:
        pytest.skip("only root can be root")
    pid = os.fork()
    if pid == 0:
        try:
            if user and os.getuid() == 0:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            work()
        except BaseException:  # noqa: BLE001 - the child must not run pytest's own exit
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert status == 0, "see the traceback on stderr"


@pytest.fixture
def open_path(tmp_path: Path) -> Path:
    """Give a folder that every user may write; pytest's own are private."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    tmp_path.chmod(0o777)
    return tmp_path


def deep(top: int, depth: int) -> None:
    """Nest folders by descriptor, far beyond PATH_MAX; some hold files and links."""
    here = os.dup(top)
    for level in range(depth):
        os.mkdir("d", dir_fd=here)
        if level % 100 == 0:
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
            os.symlink("/etc", "link", dir_fd=here)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


@pytest.mark.parametrize("user", USERS)
def test_three_thousand_nested_folders(open_path: Path, user: int) -> None:
    """Deeper than a path can name and than Python can recurse."""

    def work() -> None:
        root = open_path / "scratch"
        root.mkdir()
        top = os.open(root, os.O_RDONLY)
        deep(top, 3000)
        os.close(top)
        assert remove(str(root))
        assert not root.exists()

    as_user(user, work)


@pytest.mark.parametrize("user", USERS)
def test_folders_without_any_permission(open_path: Path, user: int) -> None:
    """Mode 000 folders and files, nested, at every level."""

    def work() -> None:
        root = open_path / "scratch"
        inner = root
        for name in "abcd":
            inner /= name
            inner.mkdir(parents=True)
            (inner / "file").write_text("x")
            (inner / "empty").mkdir(mode=0)
        for folder in [inner, *inner.parents]:
            if root in folder.parents:
                (folder / "file").chmod(0)
                folder.chmod(0)
        for mode in (0o100, 0o200, 0o300, 0o400, 0o500, 0o600):  # each lacks something that removing needs
            (root / f"m{mode}" / "inner").mkdir(parents=True)
            (root / f"m{mode}" / "file").touch()
            (root / f"m{mode}" / "inner" / "file").touch()
            (root / f"m{mode}" / "inner").chmod(mode)
            (root / f"m{mode}").chmod(mode)
        assert remove(str(root))
        assert not root.exists()

    as_user(user, work)


@pytest.mark.parametrize("user", USERS)
def test_the_scratch_folder_itself_without_any_permission(open_path: Path, user: int) -> None:
    """`chmod 000 $HOME` by the script is no way to stay."""

    def work() -> None:
        root = open_path / "scratch"
        (root / "inner").mkdir(parents=True)
        (root / "inner" / "file").write_text("x")
        root.chmod(0)
        assert remove(str(root))
        assert not root.exists()

    as_user(user, work)


@pytest.mark.parametrize("user", USERS)
def test_links_out_are_unlinked_and_their_targets_live(open_path: Path, user: int) -> None:
    """Links to files and folders outside, loops and dangling ones, also in a folder that must be made readable."""

    def work() -> None:
        target = open_path / "precious"
        (target / "sub").mkdir(parents=True)
        (target / "sub" / "file").write_text("keep")
        (target / "closed").mkdir(mode=0o500)
        root = open_path / "scratch"
        (root / "a" / "b").mkdir(parents=True)
        for folder in (root, root / "a", root / "a" / "b"):
            (folder / "to-folder").symlink_to(target)
            (folder / "to-file").symlink_to(target / "sub" / "file")
            (folder / "to-root").symlink_to("/")
            (folder / "up").symlink_to("..")
            (folder / "dangling").symlink_to("nowhere")
            (folder / "loop").symlink_to("loop")
            os.link(target / "sub" / "file", folder / "hard")
        (root / "a" / "b").chmod(0)
        assert remove(str(root))
        assert (target / "sub" / "file").read_text() == "keep"
        assert stat.S_IMODE((target / "closed").stat().st_mode) == 0o500

    as_user(user, work)


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """`rm -r scratch; ln -s ~ scratch`: the home stays."""
    target = tmp_path / "home"
    target.mkdir()
    (target / "file").write_text("keep")
    link = tmp_path / "scratch"
    link.symlink_to(target)
    remove(str(link))
    assert (target / "file").read_text() == "keep"


def test_an_unused_folder_is_removed_by_itself_and_never_through_a_link(tmp_path: Path) -> None:
    """What is as it was made goes at once; a link in place of the folder, or of `output` in it, costs its target nothing."""
    (tmp_path / "target/output").mkdir(parents=True)
    assert remove_scratch(make_scratch(tmp_path))
    (tmp_path / "link").symlink_to("target")
    assert not remove_scratch(tmp_path / "link")
    made = make_scratch(tmp_path)
    (made / "output").rmdir()
    (made / "output").symlink_to(tmp_path / "target/output")
    assert remove_scratch(made)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["link", "output", "target"]


@pytest.mark.parametrize("user", USERS)
def test_names_made_to_confuse(open_path: Path, user: int) -> None:
    """Names the remover itself uses, names that are not UTF-8, pipes, sockets, many entries, wide and deep."""

    def work() -> None:
        root = open_path / "scratch"
        root.mkdir()
        for number in range(6):
            inner = root / f".skillrun-{number}" / ".skillrun-1" / ".skillrun-2"
            inner.mkdir(parents=True)
            (inner / ".skillrun-3").write_text("x")
            (root / f"w{number}" / f".skillrun-{number}" / "x" / "y").mkdir(parents=True)
        (root / ".skillrun-7").write_text("x")
        raw = os.fsencode(root)
        os.mkdir(raw + b"/\xff\xfe")  # noqa: PTH102 - a path has no bytes
        os.mkfifo(raw + b"/\xff\xfe/pipe")
        os.mkdir(raw + b"/" + b"n" * 255)  # noqa: PTH102 - see above
        for number in range(500):
            (root / f"f{number}").touch()
        assert remove(str(root))
        assert not root.exists()

    as_user(user, work)


@pytest.mark.parametrize("depth", [2, 3, 9])
def test_a_name_that_the_remover_might_take_is_in_nobodys_way(tmp_path: Path, depth: int) -> None:
    """A script that knows how folders are handed up can't lay one there that stays until the runner is closed."""
    for number in range(4):
        (tmp_path / "scratch" / f".skillrun-{number}" / "/".join("x" * depth)).mkdir(parents=True)
    assert remove(str(tmp_path / "scratch"))
    assert not (tmp_path / "scratch").exists()


def test_what_could_not_be_removed_is_tried_again_at_every_run(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not given up after the second time: a server that lives long would fill its disk."""
    arena.script("print('fine')\n")
    real = skillrun.launch.scratches.remove_scratch
    with arena.runner() as runner:
        monkeypatch.setattr(skillrun.launch.scratches, "remove_scratch", lambda _: False)
        for _ in range(3):
            runner.run("demo", "go.py")
        assert len(scratches(runner)) == 3
        monkeypatch.setattr(skillrun.launch.scratches, "remove_scratch", real)
        runner.run("demo", "go.py")
        assert not scratches(runner)
    arena.assert_clean()


def test_a_folder_that_is_gone_counts_as_removed(tmp_path: Path) -> None:
    """The warden and the owner both remove; the second finds nothing and is content."""
    assert remove(str(tmp_path / "nothing"))


def test_scratch_is_private(tmp_path: Path) -> None:
    """Mode 0700 at any umask, a name that can't be guessed, an output folder."""
    before = os.umask(0)
    try:
        first, second = (make_scratch(tmp_path) for _ in range(2))
    finally:
        os.umask(before)
    assert first != second
    assert stat.S_IMODE(first.stat().st_mode) == 0o700
    assert sorted(entry.name for entry in first.iterdir()) == ["output"]
    assert remove_scratch(first)


@pytest.mark.parametrize("mode", MODES)
def test_a_script_that_makes_a_mess_of_its_scratch(arena: Arena, mode: str) -> None:
    """3,000 nested folders, closed folders and links out, made by a run: gone when the result is there."""
    keep = arena.out / "keep"
    keep.write_text("keep")
    arena.script(
        "import os\nhome = os.environ['HOME']\nos.chdir(home)\nout = os.environ['WORKSPACE'] + '/out'\n"
        "os.symlink(out, 'link')\nos.makedirs('x/y')\nos.symlink(out + '/keep', 'x/y/link')\nopen('x/f', 'w').close()\n"
        "os.chmod('x/y', 0)\nos.chmod('x', 0)\n"
        "os.mkdir('deep')\nos.chdir('deep')\n"
        "for _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\n"
        "os.chmod(home, 0)\nprint(home)\n"
    )
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.py", timeout=20)
        assert result.ok, result.stderr.text
        assert not os.path.lexists(result.stdout.text.strip())
        assert not scratches(runner)
    assert keep.read_text() == "keep"
    arena.assert_clean()


def test_missing_write_paths_are_made_and_taken_away(tmp_path: Path) -> None:
    """Folders above included; each goes again when the run left it as it was."""
    made = make_missing([(tmp_path / "a" / "b" / "c", True), (tmp_path / "a" / "f.txt", False)])
    assert (tmp_path / "a" / "b" / "c").is_dir()
    assert (tmp_path / "a" / "f.txt").read_bytes() == b""
    remove_untouched(made)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("deed", ["write", "truncate", "replace", "fill", "remove"])
def test_a_missing_path_that_was_used_stays(tmp_path: Path, deed: str) -> None:
    """Even when it is empty again: an empty file that a script wrote is its output."""
    file, folder = tmp_path / "f.txt", tmp_path / "d"
    made = make_missing([(file, False), (folder, True)])
    if deed == "write":
        file.write_text("x")
    elif deed == "truncate":
        file.write_text("x")
        file.write_text("")
    elif deed == "replace":
        file.unlink()
        file.touch()
    elif deed == "fill":
        (folder / "x").touch()
        (folder / "x").unlink()
    else:
        file.unlink()
        folder.rmdir()
    remove_untouched(made)
    assert file.exists() == (deed in {"write", "truncate", "replace"})
    assert folder.exists() == (deed == "fill")


@pytest.mark.parametrize("place", ["above", "last", "dangling"])
def test_a_link_in_the_way_of_a_missing_path(tmp_path: Path, place: str) -> None:
    """Nothing is made through a link, and what was made for it before is taken back."""
    outside, work = tmp_path / "outside", tmp_path / "work"
    outside.mkdir()
    work.mkdir()
    wanted = work / "new" / "x" / "f.txt"
    if place == "above":
        (work / "new").symlink_to(outside)
    elif place == "last":
        (work / "new" / "x").mkdir(parents=True)
        wanted.symlink_to(outside / "made")
    else:
        (work / "new").mkdir()
        (work / "new" / "x").symlink_to(tmp_path / "nowhere")
    before = sorted(work.rglob("*"))
    untouched = outside.stat().st_mtime_ns
    try:
        made = make_missing([(work / "other", True), (wanted, False)])
    except ConfigError as problem:
        said = str(problem)
        assert "f.txt" in said
    else:
        assert not list(outside.iterdir())
        remove_untouched(made)
    assert not list(outside.iterdir())
    assert outside.stat().st_mtime_ns == untouched, "something was made there, and taken away again"
    assert not (tmp_path / "nowhere").exists()
    assert sorted(work.rglob("*")) == before


def test_a_placeholder_that_was_swapped_for_a_link_takes_nothing_away(tmp_path: Path) -> None:
    """The script moves the folder above away and puts a link there: what the link leads to stays."""
    victim = tmp_path / "victim"
    (victim / "sub").mkdir(parents=True)
    (victim / "f.txt").touch()
    made = make_missing([(tmp_path / "new" / "f.txt", False), (tmp_path / "new" / "sub", True)])
    (tmp_path / "new").rename(tmp_path / "moved")
    (tmp_path / "new").symlink_to(victim)
    remove_untouched(made)
    assert (victim / "f.txt").exists()
    assert (victim / "sub").is_dir()


def test_making_fails_half_way_and_nothing_stays(tmp_path: Path) -> None:
    """A file in the way of a folder is an error with the path in it; folders made before it are gone."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="file/below"):
        make_missing([(tmp_path / "a" / "b", True), (tmp_path / "file" / "below", True)])
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("mode", MODES)
def test_a_granted_path_that_is_missing_exists_during_the_run_only(arena: Arena, mode: str) -> None:
    """Through the whole pipeline: made before, seen by the script, removed when unused, kept when used."""
    arena.out.rmdir()
    arena.script(
        "import os, sys\nout = os.environ['WORKSPACE'] + '/out'\nprint(os.path.isdir(out))\nif sys.argv[1:]:\n    open(out + '/f', 'w').write('x')\n"
    )
    with arena.runner(mode) as runner:
        assert runner.run("demo", "go.py").stdout.text == "True\n"
        assert not arena.out.exists()
        assert runner.run("demo", "go.py", ["write"]).stdout.text == "True\n"
        assert (arena.out / "f").read_text() == "x"
    arena.assert_clean()
