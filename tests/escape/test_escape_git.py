"""Attacks on what git runs because a configuration names it: hooks elsewhere, included settings, filters, monitors."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from attack import blocks_change

if TYPE_CHECKING:
    from pathlib import Path

    from attack import Scene

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")

WRITE = "open(args[0], 'a').write('# changed\\n')"
NEW = "os.makedirs(os.path.dirname(args[0]), exist_ok=True); open(args[0], 'w').write('changed')"

# What the config of a repository says, and the file of the workspace that git then runs or obeys.
NAMED = {
    "hooks in another folder": ("[core]\nhooksPath = tools/hooks\n", "tools/hooks/pre-commit"),
    "hooks by an absolute path": ('[core] hookspath = "{top}/tools/hooks"\n', "tools/hooks/pre-commit"),
    "an included file": ("[include]\npath = ../settings/git\n", "settings/git"),
    "a file included under a condition": ('[includeIf "gitdir:/"]\npath = ../settings/git\n', "settings/git"),
    "hooks named by an included file": ("[include]\n\tpath = more\n", "deep/hooks/pre-push"),
    "a monitor": ("[core]\n  fsmonitor = ./tools/monitor --fast\n", "tools/monitor"),
    "a filter": ('[filter "x"]\nclean = sh -c \\\n "exec \'tools/clean.sh\' %f"\n', "tools/clean.sh"),
    "a filter by an interpreter": ('[filter "x"]\nclean = python3 clean.py %f ; a comment\n', "clean.py"),
    "an alias": ("[alias]\nst = !./tools/st\n", "tools/st"),
    "attributes": ("[core]\nattributesFile = settings/attributes\n", "settings/attributes"),
}


@pytest.mark.parametrize("what", NAMED)
def test_blocks_changing_what_git_is_told_to_run(scene: Scene, what: str) -> None:
    """What a repository's settings name is protected like `.git/hooks` (law 8)."""
    config, name = NAMED[what]
    scene.file(scene.workspace / ".git/HEAD", "ref: refs/heads/main\n")
    scene.file(scene.workspace / ".git/config", config.format(top=scene.workspace))
    scene.file(scene.workspace / ".git/more", "[core]\n\thooksPath = deep/hooks\n")
    blocks_change(scene, WRITE, scene.file(scene.workspace / name, "as it was\n"))


def test_blocks_adding_a_hook_where_hooks_are_looked_for(scene: Scene) -> None:
    """A hook that is not there is not added either."""
    scene.file(scene.workspace / ".git/config", "[core]\nhooksPath = tools/hooks\n")
    scene.file(scene.workspace / "tools/hooks/README")
    blocks_change(scene, NEW, scene.workspace / "tools/hooks/pre-commit")


def test_reports_hooks_that_appear_where_none_were(scene: Scene) -> None:
    """A folder of hooks that is named and not there can't be kept away, so its appearance is reported."""
    scene.file(scene.workspace / ".git/config", "[core]\nhooksPath = tools/hooks\n")
    hook = scene.workspace / "tools/hooks/pre-commit"
    scene.script(NEW)
    run = scene.confined(hook)
    assert run.attempted
    assert not hook.exists() or run.violated(scene.workspace / "tools/hooks")


def test_blocks_changing_hooks_that_the_user_has_for_every_repository(scene: Scene) -> None:
    """`core.hooksPath` in the user's own settings is relative to each repository."""
    scene.file(scene.home / ".gitconfig", "[core]\n\thooksPath = .myhooks\n")
    scene.file(scene.workspace / ".git/config", "[core]\n")
    blocks_change(scene, WRITE, scene.file(scene.workspace / ".myhooks/pre-commit", "as it was\n"))


def test_blocks_changing_hooks_behind_a_link(scene: Scene) -> None:
    """A folder of hooks that is a link: neither the node nor what it leads to is changed."""
    scene.file(scene.workspace / ".git/config", "[core]\nhooksPath = hooks\n")
    target = scene.file(scene.workspace / "real/pre-commit", "as it was\n")
    scene.link(scene.workspace / "hooks", scene.workspace / "real")
    blocks_change(scene, WRITE, target)


def test_blocks_changing_hooks_of_a_linked_work_tree(scene: Scene) -> None:
    """In a linked work tree the settings are those of the repository it belongs to."""
    scene.file(scene.outside / "repo/.git/config", "[core]\nhooksPath = tools\n")
    scene.file(scene.outside / "repo/.git/worktrees/w/commondir", "../..\n")
    scene.file(scene.workspace / ".git", f"gitdir: {scene.outside}/repo/.git/worktrees/w\n")
    blocks_change(scene, WRITE, scene.file(scene.workspace / "tools/pre-commit", "as it was\n"))


def test_blocks_changing_hooks_of_a_repository_deep_in_the_workspace(scene: Scene) -> None:
    """A repository below the workspace has its own top, which its settings are relative to."""
    scene.file(scene.workspace / "vendor/lib/.git/config", "[core]\nhooksPath = tools\n")
    blocks_change(scene, WRITE, scene.file(scene.workspace / "vendor/lib/tools/pre-commit", "as it was\n"))


def test_the_control_git_runs_a_hook_that_was_changed(tmp_path: Path) -> None:
    """Without protection the next commit runs what a script wrote into such a folder."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run([*git, "config", "core.hooksPath", "tools/hooks"], check=True)
    hook = tmp_path / "tools/hooks/pre-commit"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o700)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
    assert (tmp_path / "ran").exists()
