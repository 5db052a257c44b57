"""Ctrl-C and TERM in the middle of a run: the tree is dead before skillrun exits, and nothing else is left."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from desk import wait_for

if TYPE_CHECKING:
    from desk import Desk

# Each has a child that sleeps for a number of seconds that no other process sleeps for.
PATIENT = """#!/bin/sh
trap 'echo cleaned up; exit 3' TERM
sleep {marker} & echo started > out/started
wait
"""
SLOW = """#!/bin/sh
trap 'sleep 0.6; echo cleaned up; exit 3' TERM
sleep {marker} & echo started > out/started
wait
"""
STUBBORN = """#!/bin/sh
trap '' TERM INT HUP
sleep {marker} & echo started > out/started
while :; do sleep 1; done
"""
LOUD = """#!/bin/sh
sleep {marker} & echo started > out/started
exec yes
"""
STOPS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@dataclass(frozen=True)
class Running:
    """A run whose script has started, told apart from all other processes by its marker."""

    process: subprocess.Popen[str]
    marker: str
    temporary: Path

    def send(self, number: int, *, group: bool) -> None:
        """Send a signal to skillrun alone, or to the whole group as a terminal does."""
        (os.killpg if group else os.kill)(self.process.pid, number)

    def end(self) -> tuple[int, str, str]:
        """Wait for skillrun's own end; right then everything of the run has to be gone."""
        out, err = self.process.communicate(timeout=30)
        assert self.alive() == []
        assert list(self.temporary.iterdir()) == []
        assert "Traceback" not in err
        return self.process.returncode, out, err

    def alive(self) -> list[str]:
        """List the processes of the run, as the whole machine sees them."""
        lines = (_command_line(path) for path in Path("/proc").iterdir() if path.name.isdigit())
        return [line for line in lines if self.marker in line]


def _command_line(path: Path) -> str:
    try:
        return (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def start(desk: Desk, script: str, *words: str) -> Running:
    """Start a run and return when its script runs."""
    marker = f"{300 + secrets.randbelow(99)}.{secrets.randbelow(10**9):09d}"
    desk.skill("demo", script.format(marker=marker), front="fs_write: [./out]\n")
    (desk.here / "out").mkdir()
    temporary = desk.home / "temporary"
    temporary.mkdir()
    process = desk.start("run", "demo", "--write", "out", *words, TMPDIR=str(temporary))
    running = Running(process, marker, temporary)
    try:
        wait_for(desk.here / "out" / "started")
        end = time.monotonic() + 10
        while not running.alive():  # the child exists, and has become `sleep` a moment later
            assert time.monotonic() < end, "the control failed: the run's processes can't be seen"
            time.sleep(0.02)
    except BaseException:
        process.kill()
        raise
    return running


@pytest.mark.parametrize("script", [PATIENT, STUBBORN], ids=["patient", "stubborn"])
@pytest.mark.parametrize("group", [True, False], ids=["group", "alone"])
@pytest.mark.parametrize(("number", "code"), STOPS, ids=["INT", "TERM", "HUP"])
def test_stopping_ends_the_tree_first(
    confining: Desk, number: int, code: int, script: str, *, group: bool
) -> None:
    """As a terminal sends it, to the group, and to skillrun alone: 128+n, a dead tree, no scratch folder."""
    running = start(confining, script)
    running.send(number, group=group)
    returned, out, err = running.end()
    assert returned == code
    assert "error[stopped]" in err
    assert ("cleaned up" in out) == (script is PATIENT)  # the script had its grace


@pytest.mark.parametrize("script", [SLOW, STUBBORN], ids=["slow", "stubborn"])
def test_a_second_ctrl_c_leaves_nothing_either(confining: Desk, script: str) -> None:
    """Somebody who is impatient, and a TERM on top: the script keeps its grace, the first signal counts."""
    running = start(confining, script)
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        running.send(number, group=True)
        time.sleep(0.05)
    code, out, _ = running.end()
    assert code == 130
    assert ("cleaned up" in out) == (script is SLOW)


def test_ctrl_c_held_down_is_130_to_the_very_end(confining: Desk) -> None:
    """Signals that go on while skillrun exits change its exit code no more, not even in the last moment."""
    running = start(confining, PATIENT)
    while running.process.poll() is None:
        running.send(signal.SIGINT, group=False)
        time.sleep(0.0005)
    assert running.end()[0] == 130


def test_a_reader_that_takes_nothing_does_not_hold_up_the_end(confining: Desk) -> None:
    """Output that nobody reads, as in a pager: TERM still ends it all, without waiting for the reader."""
    running = start(confining, LOUD)
    time.sleep(0.5)  # both pipes are full by now
    began = time.monotonic()
    running.send(signal.SIGTERM, group=False)
    while running.process.poll() is None and time.monotonic() - began < 15:
        time.sleep(0.05)
    took = time.monotonic() - began
    assert running.end()[0] == 143
    assert took < 10


def test_a_killed_skillrun_leaves_nothing(confining: Desk) -> None:
    """SIGKILL gives no chance to clean up; the tree and the scratch folder go all the same."""
    running = start(confining, STUBBORN)
    running.send(signal.SIGKILL, group=False)
    running.process.wait(10)
    end = time.monotonic() + 10
    while time.monotonic() < end and (running.alive() or any(running.temporary.iterdir())):
        time.sleep(0.05)
    assert running.end()[0] == -signal.SIGKILL


def test_json_says_that_it_was_cancelled(confining: Desk) -> None:
    """With `--json` a stopped run prints a Result too."""
    running = start(confining, PATIENT, "--json")
    running.send(signal.SIGINT, group=True)
    code, out, _ = running.end()
    result = json.loads(out)
    assert (code, result["termination"], result["error"]["rule"]) == (130, "cancelled", "stopped")


def test_stopped_while_it_waits_for_its_input(desk: Desk) -> None:
    """`--stdin -` that never ends: Ctrl-C is 130, and nothing was started."""
    desk.skill("demo", "#!/bin/sh\necho started\n")
    process = subprocess.Popen(
        desk.command("run", "demo", "--stdin", "-"), cwd=desk.here, env=desk.environment(), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    status = Path("/proc", str(process.pid), "status")
    end = time.monotonic() + 10
    # Only when its handler is there does a signal mean anything; waiting for it beats guessing a delay.
    while time.monotonic() < end and not _catches(status, signal.SIGHUP):
        time.sleep(0.02)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_an_ignored_signal_stays_ignored(confining: Desk) -> None:
    """Under `nohup` a closed terminal does not end the run."""
    confining.skill(
        "demo", "#!/bin/sh\necho started > out/started; sleep 1; echo done\n", front="fs_write: [./out]\n"
    )
    (confining.here / "out").mkdir()
    words = " ".join(confining.command("run", "demo", "--write", "out"))
    process = subprocess.Popen(
        f"trap '' HUP; exec {words}", shell=True, cwd=confining.here, env=confining.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    wait_for(confining.here / "out" / "started")
    os.killpg(process.pid, signal.SIGHUP)
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "done\n")


def _catches(status: Path, number: int) -> bool:
    try:
        line = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt:"))
    except (OSError, StopIteration):
        return False
    return bool(int(line.split()[1], 16) >> (number - 1) & 1)
