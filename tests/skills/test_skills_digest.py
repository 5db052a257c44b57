"""The digest of a skill and the identity of a file."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillrun.errors import SkillError
from skillrun.skills import digest as module
from skillrun.skills.digest import digest, identity

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def skill(make_skill: Callable[..., Path]) -> Path:
    """Make a skill with a script, a link and a folder."""
    folder = make_skill("skill", scripts={"run.py": "print(1)\n", "sub/x.txt": "x"})
    (folder / "link").symlink_to("scripts/run.py")
    return folder


def test_the_form_is_fixed(tmp_path: Path) -> None:
    """Written apart from the code: kind, exec bit, length and path, length and content, sorted by bytes."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b/f").write_bytes(b"content")
    (tmp_path / "b/f").chmod(0o755)
    (tmp_path / "a").symlink_to("b/f")
    os.mkfifo(tmp_path / "c")
    parts = b"skillrun digest 1\n"
    for kind, bit, path, content in (
        (b"l", b"-", b"a", b"b/f"),
        (b"f", b"x", b"b/f", hashlib.sha256(b"content").digest()),
        (b"p", b"-", b"c", b""),
    ):
        parts += kind + bit + len(path).to_bytes(8, "big") + path + len(content).to_bytes(8, "big") + content
    assert digest(tmp_path) == "sha256:" + hashlib.sha256(parts).hexdigest()


def _append(folder: Path) -> None:
    with (folder / "SKILL.md").open("a") as file:
        file.write("x")


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": _append,
    "new file": lambda folder: (folder / "new").touch(),
    "removed": lambda folder: (folder / "scripts/sub/x.txt").unlink(),
    "renamed": lambda folder: (folder / "scripts/run.py").rename(folder / "scripts/run2.py"),
    "moved": lambda folder: (folder / "scripts/sub/x.txt").rename(folder / "scripts/x.txt"),
    "exec bit": lambda folder: (folder / "scripts/run.py").chmod(0o755),
    "link target": lambda folder: (
        (folder / "link").unlink(),
        (folder / "link").symlink_to("./scripts/run.py"),
    ),
    "link to file": lambda folder: (
        (folder / "link").unlink(),
        (folder / "link").write_text("scripts/run.py"),
    ),
    "hidden": lambda folder: (folder / ".hidden").touch(),
    "fifo": lambda folder: os.mkfifo(folder / "fifo"),
    "other cache": lambda folder: (folder / ".cache").write_text("x"),
    "gitignore": lambda folder: (folder / ".gitignore").write_text("x"),
}


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_every_change_shows(skill: Path, change: str) -> None:
    """Content, names, places, exec bit, links and new entries each give another digest."""
    before = digest(skill)
    CHANGES[change](skill)
    assert digest(skill) != before


@pytest.mark.parametrize(
    "place", [".git/config", "__pycache__/x.pyc", "scripts/__pycache__/x.pyc", "node_modules/.cache/x"]
)
def test_what_using_a_skill_leaves_does_not_count(skill: Path, place: str) -> None:
    """Version control, bytecode and caches are no part of the version."""
    before = digest(skill)
    (skill / place).parent.mkdir(parents=True)
    (skill / place).write_text("x")
    assert digest(skill) == before


def test_place_and_times_do_not_count(skill: Path, tmp_path: Path) -> None:
    """A copy elsewhere, at another time, with other permissions than exec, is the same version."""
    shutil.copytree(skill, tmp_path / "copy", symlinks=True)
    os.utime(tmp_path / "copy/SKILL.md", (1, 1))
    (tmp_path / "copy/SKILL.md").chmod(0o600)
    assert digest(tmp_path / "copy") == digest(skill)


def test_content_can_not_pass_for_another_entry(tmp_path: Path) -> None:
    """Lengths stand before names and contents, so no cut between two entries can be moved."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (first / "a").symlink_to("xb")
    (first / "b").symlink_to("y")
    (second / "a").symlink_to("x")
    (second / "bb").symlink_to("y")
    assert digest(first) != digest(second)


def test_links_are_not_followed(skill: Path, tmp_path: Path) -> None:
    """What lies behind a link out of the skill is not read, folders and cycles included."""
    (tmp_path / "outside").mkdir()
    (skill / "out").symlink_to(tmp_path / "outside")
    (skill / "loop").symlink_to(".")
    before = digest(skill)
    (tmp_path / "outside/new").write_text("x")
    assert digest(skill) == before


@pytest.mark.timeout(10)
def test_what_can_not_be_read_is_recorded_without_opening(
    skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FIFO, a socket and a link to a device do not hold the digest up, and each counts by its kind."""
    digests = {digest(skill)}
    os.mkfifo(skill / "odd")
    digests.add(digest(skill))
    (skill / "odd").unlink()
    monkeypatch.chdir(skill)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("odd")
        digests.add(digest(skill))
    (skill / "odd").unlink()
    (skill / "odd").symlink_to("/dev/zero")
    digests.add(digest(skill))
    assert len(digests) == 4


def test_what_is_closed_is_an_error(ordinary: Path) -> None:
    """A file or folder that can't be read is never left out of the digest in silence."""
    (ordinary / "closed").mkdir()
    (ordinary / "file").write_text("x")
    assert digest(ordinary)
    for name in ("closed", "file"):
        (ordinary / name).chmod(0)
        with pytest.raises(SkillError) as caught:
            digest(ordinary)
        assert caught.value.problem.rule == "digest-unreadable"
        assert name in caught.value.problem.message
        (ordinary / name).chmod(0o755)
    with pytest.raises(SkillError):
        digest(ordinary / "gone")


def test_the_number_of_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is no skill in size is refused."""
    monkeypatch.setattr(module, "ENTRY_LIMIT", 10)
    for number in range(11):
        (tmp_path / str(number)).touch()
    with pytest.raises(SkillError, match="more than 10 files"):
        digest(tmp_path)


def test_names_of_any_bytes_count(tmp_path: Path) -> None:
    """A file name that is no UTF-8 is part of the digest as its bytes."""
    before = digest(tmp_path)
    (tmp_path / os.fsdecode(b"caf\xe9\n")).touch()
    assert digest(tmp_path) != before


def test_a_small_skill_is_quick(skill: Path) -> None:
    """It is on the way of every run: well under a millisecond where nothing else is going on."""
    digest(skill)
    best = min(_timed(skill) for _ in range(20))
    assert best < 0.005


def _timed(folder: Path) -> float:
    began = time.perf_counter()
    digest(folder)
    return time.perf_counter() - began


def test_identity_is_that_of_the_file(tmp_path: Path) -> None:
    """Device, inode, size, time and content; another content or another file shows."""
    path = tmp_path / "run.py"
    path.write_bytes(b"print(1)\n")
    status = path.stat()
    known = identity(path)
    assert (known.device, known.inode, known.size, known.mtime_ns) == (
        status.st_dev,
        status.st_ino,
        9,
        status.st_mtime_ns,
    )
    assert known.sha256 == hashlib.sha256(b"print(1)\n").hexdigest()
    path.write_bytes(b"print(2)\n")
    assert identity(path) != known
    (tmp_path / "other").write_bytes(b"print(1)\n")
    os.utime(tmp_path / "other", ns=(status.st_mtime_ns, status.st_mtime_ns))
    assert identity(tmp_path / "other") != known


@pytest.mark.timeout(10)
def test_identity_refuses_what_is_no_file(tmp_path: Path) -> None:
    """A link, a folder, a FIFO and nothing at all are refused without waiting."""
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "link", tmp_path / "fifo", tmp_path, tmp_path / "gone", Path("a\x00")):
        with pytest.raises(SkillError, match="can't be read"):
            identity(path)


def test_a_file_without_end_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """A sparse file of terabytes would keep a run, and the list of tools, waiting for an hour: it is told at once."""
    (tmp_path / "SKILL.md").write_text("x")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 42)
    began = time.monotonic()
    with pytest.raises(SkillError, match="GiB"):
        digest(tmp_path)
    assert time.monotonic() - began < 5


@pytest.mark.skipif(not Path("/proc/kallsyms").exists(), reason="no such file here")
def test_a_file_that_is_longer_than_its_size_says_is_read_in_large_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that grows while it is read, or a file of /proc: a byte at a time it would take minutes."""
    sizes: list[int] = []
    read = os.read

    def noted(descriptor: int, size: int) -> bytes:
        sizes.append(size)
        return read(descriptor, size)

    with monkeypatch.context() as patch:
        patch.setattr(os, "read", noted)
        found = identity(Path("/proc/kallsyms"))
    words = Path("/proc/kallsyms").read_bytes()
    assert found.sha256 == hashlib.sha256(words).hexdigest()
    assert sizes.count(1) == 1
    assert len(sizes) < 3 + len(words) / 1000
