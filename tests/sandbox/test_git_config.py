"""Reading git's configuration: what git itself reads is the measure."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillrun.sandbox.git_config import read
from skillrun.sandbox.git_config import settings as found_in
from skillrun.sandbox.git_obeys import obeyed
from skillrun.sandbox.search import Search, search

ROUNDS = int(os.environ.get("SKILLRUN_FUZZ", "60"))
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")

LINES = [
    "[core]", "[Core]", '[filter "a b"]', '[filter "q\\"q"]', "[old.Form]", "[core] pager = less", "[alias] x",
    "hooksPath = a/b", "\tEditor=vi  ", 'clean = "a # b" c # d', "path = one\\", "  two", 'x = "a\\tb\\\\c\\"d"', "flag",
    "y = a;b", "z = 'quoted'", "", "; a comment", "# another", "e =", 'f = " kept "  ', "pager = a \\t b",
]  # fmt: skip


def as_git_reads(file: Path) -> list[tuple[str, str]] | None:
    """Return git's own reading of a file, in its order; None where it refuses the file."""
    command = ["git", "config", "--file", str(file), "--null", "--list"]
    done = subprocess.run(command, capture_output=True, check=False, env={"PATH": os.environ["PATH"]})
    if done.returncode:
        return None
    pairs = [word.partition("\n") for word in done.stdout.decode().split("\0") if word]
    return [(name, value if mark else "true") for name, mark, value in pairs]


def as_we_read(text: str) -> list[tuple[str, str]]:
    """Return our reading in git's spelling of names."""
    return [
        (".".join(part for part in (one.section, one.subsection, one.key) if part), one.value)
        for one in found_in(text)
    ]


@needs_git
@given(st.lists(st.sampled_from(LINES), max_size=8))
@settings(max_examples=ROUNDS, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_files_are_read_as_git_reads_them(tmp_path: Path, lines: list[str]) -> None:
    """Sections, quotes, escapes, comments and lines that go on: for every file git accepts, the same settings."""
    text = "[core]\n" + "\n".join(lines) + "\n"
    file = tmp_path / "config"
    file.write_text(text)
    theirs = as_git_reads(file)
    if theirs is not None:  # older versions of git make an unquoted tab a blank
        blank = [(name, value.replace("\t", " ")) for name, value in as_we_read(text)]
        assert blank == [(name, value.replace("\t", " ")) for name, value in theirs]


@given(st.text(alphabet='[]"\\\n \t=#;aZ.-', max_size=200))
@settings(max_examples=max(ROUNDS, 200), deadline=None)
def test_random_texts_are_read_to_their_end(text: str) -> None:
    """No text makes the reader raise or hang, and a setting after any garbage is still seen."""
    after = list(found_in(text + '"\n[core]\nhooksPath = x\n'))
    assert after[-1].name == "core.hookspath"


@needs_git
def test_a_mark_at_the_start_hides_nothing(tmp_path: Path) -> None:
    """Git skips a byte order mark, so it is skipped here too."""
    file = tmp_path / "config"
    file.write_bytes(b"\xef\xbb\xbf[core]\n\tfsmonitor = ./x\n")
    assert as_we_read(read(file, follow=False) or "") == as_git_reads(file) == [("core.fsmonitor", "./x")]


def test_a_long_line_takes_linear_time() -> None:
    """A megabyte of quotes or backslashes is read at once, not in time that grows with its square."""
    for unit in ('"', "\\", '\\"', "[", "a=", '["'):
        assert list(found_in("[core]\nx = " + unit * 200_000)) is not None


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "large", "link"])
def test_what_is_no_plain_file_can_not_be_judged(tmp_path: Path, kind: str) -> None:
    """Nothing but a regular file within the cap is read, and a pipe does not hold us up."""
    path = tmp_path / "config"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "large":
        path.write_bytes(b"#" * ((1 << 20) + 1))
    else:
        path.symlink_to(tmp_path / "absent")
    assert read(path, follow=False) is None


def named(workspace: Path, config: str, *, home: Path | None = None) -> set[str]:
    """Return what is protected for a config, relative to a workspace that is written to whole."""
    git = workspace / ".git/config"
    git.parent.mkdir(parents=True, exist_ok=True)
    git.write_text(config)
    found = obeyed([workspace], search([workspace], frozenset()), home=home)
    return {os.path.relpath(path, workspace) for path, _ in found}


def test_names_only_what_is_in_the_work_tree(tmp_path: Path) -> None:
    """A program on PATH, an option, and a folder elsewhere are nobody's to protect here; the workspace stays writable."""
    (tmp_path / "status").mkdir()
    config = f"[core]\npager = less -R\nfsmonitor = cd {tmp_path} && cd .. && true\n[alias]\ns = status\nt = ! git status\n"
    assert named(tmp_path, config) == set()


def test_the_work_tree_itself_is_not_protected(tmp_path: Path) -> None:
    """`core.worktree` says where the files are, not what runs."""
    (tmp_path / "sub").mkdir()
    assert named(tmp_path, f"[core]\nworktree = {tmp_path}/sub\n") == set()


def test_includes_that_lead_in_a_circle_end(tmp_path: Path) -> None:
    """A file that includes itself is read once."""
    assert named(tmp_path, "[include]\npath = config\n[core]\nhooksPath = h\n") == {".git/config", "h"}


def test_a_home_is_where_a_tilde_leads(tmp_path: Path) -> None:
    """`~/` in a value is the caller's home, which may lie in the workspace."""
    assert named(tmp_path, "[core]\nhooksPath = ~/h\n", home=tmp_path / "me") == {"me/h"}


def test_without_a_write_root_nothing_is_read(tmp_path: Path) -> None:
    """What can't be changed needs no protection."""
    assert obeyed([], Search(bare=(tmp_path,)), home=None) == ()
