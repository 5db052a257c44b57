"""On a host that lacks something the right level is chosen and named, or the run is refused."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attack
import pytest

HOST = Path(__file__).with_name("host.py")
ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """#!/bin/sh
echo ran
cat "$1" 2>/dev/null && echo LEAKED
cat /proc/1/environ 2>/dev/null | grep -q . && echo LEAKED
cat "/proc/$2/environ" 2>/dev/null | grep -q . && echo LEAKED
kill -0 "$2" 2>/dev/null && echo LEAKED
exit 0
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel is Linux's")


@pytest.fixture(scope="module")
def abi() -> int:
    """Give the Landlock ABI here; without one there is nothing to degrade."""
    from skillrun.confine import calls

    found = calls.landlock_abi()
    if found < 3:
        attack.missing("linux", "Landlock is too old here")
    return found


def become(mode: str, tmp_path: Path) -> dict[str, Any]:
    """Run the attack on a host of that kind, with a secret and a process of the caller as targets."""
    workspace = tmp_path / "work"
    scripts = tmp_path / "skill" / "scripts"
    workspace.mkdir()
    scripts.mkdir(parents=True)
    (tmp_path / "secret").write_text("secret words\n")
    (scripts / "a.sh").write_text(SCRIPT)
    (scripts.parent / "SKILL.md").write_text("---\nname: skill\ndescription: d\n---\n")
    words = [sys.executable, str(HOST), mode, str(workspace), str(scripts.parent)]
    done = subprocess.run(
        [*words, str(tmp_path / "secret"), str(os.getpid())],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    if "PermissionError" in done.stderr and "unshare" in done.stderr:
        attack.missing("linux-2", "user namespaces are barred here already")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert "LEAKED" not in answer["out"], answer
    return answer


def test_the_control_shows_that_the_script_would_leak(tmp_path: Path) -> None:
    """Run plainly, the same script reads the secret and the process."""
    (tmp_path / "secret").write_text("secret words\n")
    script = tmp_path / "a.sh"
    script.write_text(SCRIPT)

    done = subprocess.run(
        ["/bin/sh", str(script), str(tmp_path / "secret"), str(os.getpid())],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.count("LEAKED") >= 3


@pytest.mark.usefixtures("abi")
@pytest.mark.parametrize("mode", ["no-namespaces", "docker", "no-mounts", "outer-landlock"])
def test_without_namespaces_level_1_is_chosen_and_named(mode: str, tmp_path: Path) -> None:
    """Level 2 is tried, fails with a reason, and the run is confined at level 1, which the result says."""
    answer = become(mode, tmp_path)

    assert answer["termination"] == "exited", answer
    assert answer["level"] == 1
    assert answer["out"].startswith("ran")
    assert answer["level2"] is False
    assert answer["failure"]
    assert "killed" not in answer["failure"], "the reason is what failed, not that something did"


@pytest.mark.usefixtures("abi")
@pytest.mark.parametrize("mode", ["masked-proc", "masked-proc-without-true", "masked-proc-and-slow"])
def test_with_a_masked_proc_level_2_holds_and_says_what_is_shared(mode: str, tmp_path: Path) -> None:
    """Where no fresh /proc can be mounted the outer one is bound, closed by Landlock, with a warning."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    if not become("whole", tmp_path / "first")["level2"]:
        attack.missing("linux-2", "user namespaces are barred here already")

    answer = become(mode, tmp_path / "second")

    assert answer["termination"] == "exited", answer
    assert answer["level"] == 2
    assert answer["fresh_proc"] is False
    assert "proc-shared" in answer["warnings"]


@pytest.mark.usefixtures("abi")
@pytest.mark.parametrize(("mode", "words"), [("no-landlock", "Landlock"), ("no-seccomp", "filters")])
def test_without_landlock_or_seccomp_nothing_starts(mode: str, words: str, tmp_path: Path) -> None:
    """What even level 1 needs is missing: the run is refused with that reason (C-30, C-31, C-32)."""
    answer = become(mode, tmp_path)

    assert answer["termination"] == "refused", answer
    assert words in answer["error"]
    assert answer["out"] == ""


@pytest.mark.parametrize(
    ("reason", "failure"),
    [("timed_out", "nothing had started within 20 s"), ("cancelled", "the launcher died of it")],
)
def test_a_try_in_which_nothing_started_in_time_proves_nothing(
    reason: str, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Level 2 is not claimed when the try was over before its world was built."""
    from skillrun.launch import probing
    from skillrun.launch.capture import Keep
    from skillrun.launch.drive import Drive, Outcome
    from skillrun.launch.launcher import Launcher
    from skillrun.sandbox.backend import Probe

    nothing = Keep(0).captured()
    late = Outcome({"event": "ended", "reason": reason, "status": 9}, nothing, nothing, 20.0)
    monkeypatch.setattr(Drive, "running", lambda _: contextlib.nullcontext(late))
    probe = Probe(platform="linux", machine=os.uname().machine, landlock=6, seccomp=True)

    tried = probing.try_level2(Launcher(temporary=Path("/nowhere")), probe)

    assert (tried.level2, tried.level2_failure) == (False, failure)
