"""What the tests of the command line share: a private home, a folder to stand in, and outputs on file."""

from __future__ import annotations

import difflib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SNAPSHOTS = Path(__file__).resolve().parent / "snapshots"
SKILLS = Path(__file__).resolve().parent.parent.parent / "skills"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-snapshots`."""
    parser.addoption("--update-snapshots", action="store_true", help="write the outputs on file anew")


@dataclass(frozen=True)
class Desk:
    """Somebody's machine: a home, a folder to stand in, and the real command to call there."""

    home: Path
    here: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def command(self, *words: str | os.PathLike[str]) -> list[str]:
        """Write the command line."""
        return [sys.executable, "-m", "skillrun", *map(os.fspath, words)]

    def environment(self, **more: str) -> dict[str, str]:
        """Return an environment that holds nothing of the machine that the tests run on."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_STATE_HOME": str(self.home / ".state"),
            "COLUMNS": "100",
            "PYTHONDONTWRITEBYTECODE": "1",
            **self.environ,
            **more,
        }

    def __call__(
        self,
        *words: str | os.PathLike[str],
        stdin: str = "",
        cwd: Path | None = None,
        **more: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run skillrun to its end; never with a traceback, whatever it was asked."""
        done = subprocess.run(
            self.command(*words),
            cwd=cwd or self.here,
            env=self.environment(**more),
            input=stdin,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
            timeout=60,
        )
        assert "Traceback" not in done.stderr + done.stdout, done.stderr
        assert "error[internal]" not in done.stderr, done.stderr
        return done

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        """Start skillrun as a shell starts a job: in a process group of its own."""
        return subprocess.Popen(
            self.command(*words),
            cwd=self.here,
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def skill(self, key: str, script: str = "#!/bin/sh\n", *, front: str = "", root: str = "skills") -> Path:
        """Make a skill with one script, `main.sh`."""
        folder = self.here / root / key
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {key}\ndescription: For a test.\n{front}---\n")
        (folder / "scripts" / "main.sh").write_text(script)
        return folder


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Give a home and a folder that know nothing of this machine."""
    home, here = tmp_path / "home", tmp_path / "home" / "project"
    here.mkdir(parents=True)
    return Desk(home=home, here=here)


@pytest.fixture
def confining(desk: Desk) -> Desk:
    """Give a desk on a machine that can confine; skip where it can't, unless CI says that it must."""
    if desk("doctor").returncode:
        if "linux" in os.environ.get("SKILLRUN_REQUIRE_BACKENDS", "").split(","):
            pytest.fail(desk("doctor").stdout)
        pytest.skip("no backend can confine a script on this machine")
    return desk


@pytest.fixture
def snapshot(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, str], None]:
    """Compare a text with the file of that name; what differs from machine to machine is replaced first."""

    def compare(name: str, text: str) -> None:
        path = SNAPSHOTS / name
        seen = _neutral(text, tmp_path)
        if request.config.getoption("--update-snapshots"):
            path.write_text(seen)
            return
        kept = path.read_text() if path.exists() else ""
        difference = "\n".join(difflib.unified_diff(kept.splitlines(), seen.splitlines(), name, "now", lineterm=""))
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


def wait_for(path: Path, seconds: float = 20.0) -> str:
    """Wait until a file has a line, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text().strip()
        time.sleep(0.02)
    raise AssertionError(f"{path} did not come")


def _neutral(text: str, tmp_path: Path) -> str:
    text = text.replace(str(tmp_path.resolve()), "/TMP").replace(str(SKILLS), "/SKILLS")
    text = re.sub(r"sha256:[0-9a-f]{64}", "sha256:DIGEST", text)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
