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
    "an alias on the next line": ("[alias]\nst = \\\n  !./tools/st\n", "tools/st"),
    "an alias that goes elsewhere first": ('[alias]\nst = "!cd tools && ./st"\n', "tools/st"),
    "an alias from the top": ('[alias]\nst = "!$(git rev-parse --show-toplevel)/tools/st"\n', "tools/st"),
    "a filter with a blank in its name": (
        '[filter "x"]\nclean = "\'my tools/clean\' %f"\n',
        "my tools/clean",
    ),
    "hooks of another work tree": ("[core]\nworktree = ../tree\nhooksPath = h\n", "tree/h/pre-commit"),
    "hooks of the whole work tree": ("[core]\nhooksPath = .\n", "pre-commit"),
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


def test_reports_a_monitor_that_appears_where_none_was(scene: Scene) -> None:
    """A program that the settings name and that was not there is reported when it is."""
    scene.file(scene.workspace / ".git/config", "[core]\nfsmonitor = ./deep/monitor\n")
    monitor = scene.folder(scene.workspace / "deep") / "monitor"
    scene.script(NEW)
    run = scene.confined(monitor)
    assert monitor.exists()
    assert run.violated(monitor)


def test_reports_hooks_that_appear_behind_a_new_link(scene: Scene) -> None:
    """A link on the way to a folder of hooks is followed by git, so its appearance is reported."""
    scene.file(scene.workspace / ".git/config", "[core]\nhooksPath = deep/tools/hooks\n")
    scene.folder(scene.workspace / "deep")
    scene.script(
        "os.chdir('deep'); os.makedirs('x/hooks'); os.symlink('x', 'tools')\n"
        "open('tools/hooks/pre-commit', 'w').write('changed')"
    )
    run = scene.confined()
    assert (scene.workspace / "deep/tools/hooks/pre-commit").exists()
    assert run.violated(scene.workspace / "deep/tools")


def test_blocks_changing_the_users_hooks_where_there_is_no_repository(scene: Scene) -> None:
    """Hooks for every repository that lie in the workspace are protected, whether it is a repository or not."""
    scene.file(scene.home / ".gitconfig", f"[core]\n\thooksPath = {scene.workspace}/all\n")
    blocks_change(scene, WRITE, scene.file(scene.workspace / "all/pre-commit", "as it was\n"))


def test_blocks_changing_the_users_settings_behind_a_link(scene: Scene) -> None:
    """The user's own settings may be a link into a folder of such files, and that one the workspace."""
    target = scene.file(scene.workspace / "dotfiles/git", "[core]\n")
    scene.link(scene.home / ".gitconfig", target)
    blocks_change(scene, WRITE, target)


def test_blocks_replacing_a_link_between_links(scene: Scene) -> None:
    """Of links that lead to links none can be turned elsewhere."""
    scene.file(scene.workspace / ".git/config", "[core]\nhooksPath = hooks\n")
    scene.file(scene.workspace / "real/pre-commit", "as it was\n")
    middle = scene.link(scene.workspace / "deep/middle", "../real")
    scene.link(scene.workspace / "hooks", "deep/middle")
    blocks_change(scene, "os.unlink(args[0]); os.symlink('/evil', args[0])", middle)


@pytest.mark.parametrize("name", ["worktrees/w/commondir", "info/attributes", "modules/m/config"])
def test_blocks_changing_what_git_obeys_in_a_repository_of_another_name(scene: Scene, name: str) -> None:
    """A folder that a `.git` file names is protected like `.git`, in all its parts."""
    for folder in ("objects", "refs"):
        scene.folder(scene.workspace / "store" / folder)
    scene.file(scene.workspace / "store/HEAD", "ref: refs/heads/main\n")
    scene.file(scene.workspace / ".git", "gitdir: store\n")
    blocks_change(scene, WRITE, scene.file(scene.workspace / "store" / name, "as it was\n"))


SHARED = r"""
os.makedirs('x/objects'); os.makedirs('x/refs'); os.makedirs('s')
open('x/config', 'w').write('[extensions]\nworktreeConfig = true\n[core]\nrepositoryformatversion = 1\nfsmonitor = touch ran; false\n')
open('s/HEAD', 'w').write('ref: refs/heads/main\n')
open('s/commondir', 'w').write('../x\n')
open('s/config.worktree', 'w').write('[core]\nbare = false\nworktree = ' + os.path.realpath('s') + '\n')
"""


def test_reports_a_repository_that_borrows_everything(scene: Scene) -> None:
    """A folder with `HEAD` and `commondir` is a repository to git: the rest is where the latter says."""
    scene.script(SHARED)
    run = scene.confined()
    assert (scene.workspace / "s/commondir").exists()
    assert run.violated(scene.workspace / "s")


def test_the_control_git_takes_such_a_folder_for_a_repository(tmp_path: Path) -> None:
    """Without a report the next `git status` there runs a command."""
    subprocess.run(["python3", "-c", f"import os\n{SHARED}"], cwd=tmp_path, check=True)
    subprocess.run(["git", "status"], cwd=tmp_path / "s", check=False, capture_output=True)
    assert (tmp_path / "s/ran").exists()


def test_reports_a_hook_behind_many_samples(scene: Scene) -> None:
    """Samples are no hooks, and however many there are, they hide none."""
    scene.script(
        "os.makedirs('r/.git/hooks')\n"
        "for n in range(300): open(f'r/.git/hooks/a{n}.sample', 'w').close()\n"
        "open('r/.git/hooks/post-checkout', 'w').close()"
    )
    run = scene.confined()
    assert (scene.workspace / "r/.git/hooks/post-checkout").exists()
    assert run.violated(scene.workspace / "r/.git")


def test_reports_hooks_of_the_users_settings_in_a_new_repository(scene: Scene) -> None:
    """A new repository that is plain itself has the hooks that the user has for every repository."""
    scene.file(scene.home / ".gitconfig", "[core]\n\thooksPath = .myhooks\n")
    hook = scene.workspace / "r/.myhooks/pre-commit"
    scene.script("os.makedirs('r/.git')\n" + NEW)
    run = scene.confined(hook)
    assert hook.exists()
    assert run.violated(hook.parent)


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
