"""The action and the pre-commit hook: what they refuse, what they pass on, and that no value becomes a command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
CLEAN = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
SOMEBODY = {
    f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a repository with one skill on the main line and a change that asks for more."""
    folder = tmp_path / "project"
    write(folder, "")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    git(folder, "checkout", "-q", "-b", "change")
    write(folder, "timeout: 600\n")
    git(folder, "commit", "-q", "-am", "two")
    return folder


def write(folder: Path, front: str) -> None:
    """Write the skill."""
    (folder / "skills" / "demo").mkdir(parents=True, exist_ok=True)
    (folder / "skills" / "demo" / "SKILL.md").write_text(f"---\nname: demo\ndescription: x\n{front}---\n")


def git(folder: Path, *words: str) -> str:
    """Run git."""
    environ = {"PATH": os.environ.get("PATH", ""), **CLEAN, **SOMEBODY}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def act(project: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Give the script of the action, run in that repository."""
    skillrun = tmp_path / "skillrun"
    skillrun.write_text(f'#!/bin/sh\nexec {sys.executable} -m skillrun "$@"\n')
    skillrun.chmod(0o755)

    def run(**more: str) -> subprocess.CompletedProcess[str]:
        environ = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(tmp_path),
            **CLEAN,
            "GITHUB_WORKSPACE": str(project),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_SHA": git(project, "rev-parse", "HEAD"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "BASE_SHA": git(project, "rev-parse", "main"),
            "SKILLRUN": str(skillrun),
            "INPUT_LOCKED": "false",
            **more,
        }
        return subprocess.run(
            ["bash", str(ROOT / "action" / "check.sh")],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_a_pull_request(act: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    """Findings become annotations, the difference a summary, the exit code the check's."""
    done = act(INPUT_SARIF_FILE=str(tmp_path / "out.sarif"), INPUT_ROOTS="skills\n\n")
    assert done.returncode == 1
    assert done.stdout.startswith(
        "::warning file=skills/demo/SKILL.md,line=4,col=10,endColumn=13,title=skillrun request-narrowed::"
    )
    assert "### Permissions of skills" in (tmp_path / "summary.md").read_text()
    assert '"version": "2.1.0"' in (tmp_path / "out.sarif").read_text()


def test_the_base_is_the_merge_base(
    act: Callable[..., subprocess.CompletedProcess[str]], project: Path
) -> None:
    """The policy is that of the commit where the change began, passed on as a commit."""
    (project / "skillrun.yaml").write_text("sandbox: {timeout: 5}\n")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "three")
    done = act()
    assert "policy-changed this change adds `skillrun.yaml`" in done.stdout
    assert "gets `60`" in done.stdout, "the file that the change adds limits nothing yet"


@pytest.mark.parametrize("event", ["pull_request_target", "workflow_run", "issue_comment"])
def test_strangers_files_beside_secrets(
    act: Callable[..., subprocess.CompletedProcess[str]], project: Path, event: str
) -> None:
    """With such an event a checkout of the change is refused; one of the base's own files is not."""
    base = git(project, "rev-parse", "main")
    done = act(GITHUB_EVENT_NAME=event, GITHUB_SHA=base)
    assert (done.returncode, "is refused" in done.stdout) == (2, True)
    git(project, "checkout", "-q", "main")
    assert act(GITHUB_EVENT_NAME=event, GITHUB_SHA=base).returncode == 0


def test_what_is_missing_is_said(
    act: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """A shallow clone, an event without a base and a missing checkout stop with what to do, and are never green."""
    done = act(BASE_SHA="0" * 40)
    assert (done.returncode, "fetch-depth: 0" in done.stdout) == (2, True)
    done = act(BASE_SHA="")
    assert (done.returncode, "compared with" in done.stdout) == (2, True)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert act(GITHUB_WORKSPACE=str(empty), BASE_SHA="").returncode == 2
    assert act(INPUT_ROOTS="no-such").returncode == 3


@pytest.mark.parametrize("name", ["INPUT_ROOTS", "INPUT_CEILING", "INPUT_FAIL_ON", "BASE_SHA"])
def test_no_value_is_a_command(
    act: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, name: str
) -> None:
    """A value that tries to be shell, or an option, is a value."""
    marker = tmp_path / "marker"
    assert act(**{name: f"$(touch {marker});`touch {marker}`"}).returncode in {2, 3}
    assert act(**{name: "--help"}).returncode in {2, 3}
    assert not marker.exists()


def test_no_expression_in_a_script() -> None:
    """The text that a runner executes holds no `${{ … }}`: values come by the environment only."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]
    named = set(re.findall(r"INPUT_[A-Z_]+", (ROOT / "action" / "check.sh").read_text()))
    assert named == {key for key in action["runs"]["steps"][0]["env"] if key.startswith("INPUT_")}
    assert {f"INPUT_{key.upper().replace('-', '_')}" for key in action["inputs"]} == named


def test_the_hook() -> None:
    """The hook calls a command that there is, over the whole project, when a file that matters changed."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["pass_filenames"] is False
    files = re.compile(hook["files"])
    for name in (
        "SKILL.md",
        "skills/a/SKILL.md",
        "skills/a/scripts/b/c.py",
        "skillrun.yaml",
        "skillrun.lock",
    ):
        assert files.search(name), name
    assert not files.search("README.md")
    done = subprocess.run(
        [sys.executable, "-m", *hook["entry"].split(), "--help"], capture_output=True, text=True, check=True
    )
    assert "--policy-from" in done.stdout
