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
from skillrun.sandbox.git_obeys import Obeyed, Surroundings, obeyed
from skillrun.sandbox.search import Search, search

ROUNDS = int(os.environ.get("SKILLRUN_FUZZ", "60"))
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")

LINES = [
    "[core]", "[Core]", '[filter "a b"]', '[filter "q\\"q"]', "[old.Form]", "[core] pager = less", "[alias] x",
    "hooksPath = a/b", "\tEditor=vi  ", 'clean = "a # b" c # d', "path = one\\", "  two", 'x = "a\\tb\\\\c\\"d"', "flag",
    "y = a;b", "z = 'quoted'", "", "; a comment", "# another", "e =", 'f = " kept "  ', "pager = a \\t b",
    "b = \\", "   !next", 'c = "" after', 'd = a "b" \\', "   ", '  "', "g = x \\", " ; no comment", "h = \ta\r", '[filter "a"]x = y',
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


OWN = ("me/.gitconfig", "me/.config/git/config")  # protected where the home is `me` in the workspace


def named(workspace: Path, config: str, *, home: Path | None = None) -> set[str]:
    """Return what is protected for a config, relative to a workspace that is written to whole."""
    git = workspace / ".git/config"
    git.parent.mkdir(parents=True, exist_ok=True)
    git.write_text(config)
    found = obeyed([workspace], search([workspace], frozenset()), Surroundings(home, {}))
    assert found.complete
    return {os.path.relpath(path, workspace) for path, _ in found.paths}


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
    assert named(tmp_path, "[include]\npath = config\n[core]\nhooksPath = h\n") == {"h"}


def test_a_home_is_where_a_tilde_leads(tmp_path: Path) -> None:
    """`~/` in a value is the caller's home, which may lie in the workspace."""
    assert named(tmp_path, "[core]\nhooksPath = ~/h\n", home=tmp_path / "me") == {"me/h", *OWN}


def test_without_a_write_root_nothing_is_read(tmp_path: Path) -> None:
    """What can't be changed needs no protection."""
    assert obeyed([], Search(bare=(tmp_path,)), Surroundings(None, {})) == Obeyed()


HOSTILE = {
    "a nul": "[core]\nhooksPath = tools\0x\n",
    "a nul in a section": '[url "a/\0b"]\ninsteadOf = c\n',
    "a nul in a command": "[core]\nfsmonitor = './a\0b' c/\0d\n",
    "a name that is too long": f"[core]\nfsmonitor = ./{'a' * 300}\n",
    "a path that is too long": f"[core]\nhooksPath = {'a/' * 100_000}\n",
    "a path with many parts": f"[core]\nhooksPath = {'a/' * 2_000}\n",
    "a long word": f"[alias]\nx = !{'a' * 900_000}\n",
    "many words": f'[alias]\nx = "!{"a/b " * 200_000}"\n',
    "many lines": '[filter "x"]\n' + "clean=a/b\n" * 90_000,
    "many blanks": "[core]\n" + " " * 900_000,
    "many quotes": f'[alias]\nx = !{"x y" * 100_000}"\n',
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.timeout(20)
def test_no_settings_make_a_run_crash_or_wait(tmp_path: Path, what: str) -> None:
    """A workspace with such a file is looked at like any other, in time that grows with its size."""
    assert "." not in named(tmp_path, HOSTILE[what])


@pytest.mark.parametrize("name", [".git", "r/.git/commondir"])
def test_a_pointer_that_is_no_path_leads_nowhere(tmp_path: Path, name: str) -> None:
    """A script may have left such a file, and the next run is not to fail for it."""
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("gitdir: \0x\n" if name == ".git" else "\0x\n")
    assert obeyed([tmp_path], search([tmp_path], frozenset()), Surroundings(None, {})).complete


@pytest.mark.parametrize(
    "line", ["[core]\nhooksPath =", "[core]\nattributesFile =", "[init]\ntemplateDir =", "[include]\npath ="]
)
def test_an_empty_value_protects_nothing(tmp_path: Path, line: str) -> None:
    """An empty path turns a setting off; it does not mean the work tree, which would leave nothing to write."""
    assert named(tmp_path, f"{line}\n") == set()


# What people have in their settings. None of it is about a file that is there, or keeps one from being written.
ORDINARY = """
[core]
	repositoryformatversion = 0
	excludesFile = ~/.gitignore
	editor = code --wait
	pager = delta
	fsmonitor = true
	hooksPath = .husky/_
[init]
	defaultBranch = main
[remote "origin"]
	url = https://x-access-token:secret@github.com/some/main.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
[filter "lfs"]
	clean = git-lfs clean -- %f
	smudge = git-lfs smudge -- %f
	process = git-lfs filter-process
	required = true
[credential "https://github.com"]
	helper =
	helper = !/usr/bin/gh auth git-credential
[alias]
	tidy = "!rm -rf build/ dist/"
	lint = "!ruff check src/ && git status"
[merge]
	tool = meld
[extensions]
	worktreeConfig = true
[safe]
	directory = *
[user]
	signingkey = main
"""


def test_ordinary_settings_leave_ordinary_files_to_write(tmp_path: Path) -> None:
    """The names of branches and tools, and the folders that an alias works on, are no programs of the work tree."""
    for name in ("main", "origin", "meld", "delta", "code", "true", "build/x", "dist/x", "src/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    there = {name for name in named(tmp_path, ORDINARY) if (tmp_path / name).exists()}
    assert there == set()


def test_what_is_too_much_to_read_is_said(tmp_path: Path) -> None:
    """Settings that could not be looked at may name anything, so the answer is not complete."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("#" * ((1 << 20) + 1))
    assert not obeyed([tmp_path], search([tmp_path], frozenset()), Surroundings(None, {})).complete


def test_settings_that_the_environment_names_count(tmp_path: Path) -> None:
    """`GIT_CONFIG_GLOBAL` and `XDG_CONFIG_HOME` are where the user's own settings may be."""
    for environ in ({"GIT_CONFIG_GLOBAL": f"{tmp_path}/git/config"}, {"XDG_CONFIG_HOME": str(tmp_path)}):
        found = obeyed([tmp_path], search([tmp_path], frozenset()), Surroundings(None, environ))
        assert tmp_path / "git/config" in dict(found.paths)
