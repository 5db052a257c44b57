"""What the tests of the command line share: a private home, a folder to stand in, and outputs on file."""

from __future__ import annotations

import difflib
import functools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from desk import SKILLS, Desk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SNAPSHOTS = Path(__file__).resolve().parent / "snapshots"


@functools.cache
def cannot_confine(skillrun: str) -> str:
    """Ask `doctor` once why this machine can't confine a script; empty when it can."""
    done = subprocess.run(
        [sys.executable, "-m", skillrun, "doctor"], capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode else ""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Give a home and a folder that know nothing of this machine."""
    home, here = tmp_path / "home", tmp_path / "home" / "project"
    here.mkdir(parents=True)
    return Desk(home=home, here=here)


@pytest.fixture
def confining(desk: Desk) -> Desk:
    """Give a desk on a machine that can confine; skip where it can't, unless CI says that it must."""
    reason = cannot_confine("skillrun")
    if reason and "linux" in os.environ.get("SKILLRUN_REQUIRE_BACKENDS", "").split(","):
        pytest.fail(reason)
    if reason:
        pytest.skip("no backend can confine a script on this machine")
    return desk


@pytest.fixture
def snapshot(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, str], None]:
    """Compare a text with the file of that name; what differs from machine to machine is replaced first."""

    def compare(name: str, text: str) -> None:
        path = SNAPSHOTS / name
        seen = _neutral(text, tmp_path)
        if request.config.getoption("--update-snapshots", default=False):
            path.write_text(seen)
            return
        kept = path.read_text() if path.exists() else ""
        difference = "\n".join(
            difflib.unified_diff(kept.splitlines(), seen.splitlines(), name, "now", lineterm="")
        )
        assert seen == kept, f"\n{difference}\n\nif this is right: pytest tests/cli --update-snapshots"

    return compare


@pytest.fixture
def nothing_left() -> Iterator[Callable[[int], None]]:
    """Give a check that a process is gone, and end it if it is not."""
    seen: list[int] = []

    def check(pid: int) -> None:
        seen.append(pid)
        assert not Path("/proc", str(pid)).exists(), f"process {pid} is still there"

    yield check
    for pid in seen:
        if Path("/proc", str(pid)).exists():
            os.kill(pid, signal.SIGKILL)


def _neutral(text: str, tmp_path: Path) -> str:
    text = text.replace(str(tmp_path.resolve()), "/TMP").replace(str(SKILLS), "/SKILLS")
    text = re.sub(r"sha256:[0-9a-f]{64}", "sha256:DIGEST", text)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
