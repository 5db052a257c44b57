"""A git repository for a test, made without anything of this machine's own settings."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ENVIRONMENT = {
    "PATH": os.environ.get("PATH", ""),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


def git(folder: Path, *words: str, stdin: bytes = b"") -> str:
    """Run git and return what it prints."""
    done = subprocess.run(
        ["git", *words], cwd=folder, env=ENVIRONMENT, input=stdin, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def commit(folder: Path, message: str = "x") -> str:
    """Commit everything that lies there and return the revision."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")
