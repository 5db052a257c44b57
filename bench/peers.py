"""Peers: one run, and 1, 4, 16 and 64 at once, against subprocess.run, sandboxes and script runners of others."""

from __future__ import annotations

import contextlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Row
from bench.runners import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
OTHERS = HERE / ".peers/bin/python"  # made by `make bench`, since these bring much with them
IN_OTHERS = {"sandlock": "sandlock", "agno": "agno", "pydantic-ai-skills": "pydantic_ai_skills"}
AT_ONCE = (1, 4, 16, 64)
_SLOW = {"sandbox-runtime": 12}  # starts node; fewer runs of it say the same


class Worker:
    """One runner in its process."""

    def __init__(self, kind: str, script: Path, workspace: Path) -> None:
        python = str(OTHERS) if kind in IN_OTHERS else sys.executable
        self._process = subprocess.Popen(
            [python, str(HERE / "runners.py"), kind, str(script), str(workspace)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE.parent,
        )  # fmt: skip
        self.ready = self._read() == "ready\n"

    def seconds(self, count: int, at_once: int) -> float:
        """Make runs and return the seconds they took."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count} {at_once}\n")
        self._process.stdin.flush()
        return float(self._read())

    def close(self) -> None:
        """End it."""
        self._process.communicate()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def there(kind: str) -> str | None:
    """Say why a peer can't be measured, None when it can."""
    if kind in IN_OTHERS:
        done = OTHERS.exists() and subprocess.run(
            [str(OTHERS), "-c", f"import {IN_OTHERS[kind]}"], check=False, capture_output=True
        )
        return None if done and done.returncode == 0 else "it is not installed (`make bench` does it)"
    if kind == "bubblewrap":
        return None if shutil.which("bwrap") else "there is no `bwrap`"
    if kind == "sandbox-runtime":
        found = (HERE / ".npm/node_modules/.bin/srt").exists() and shutil.which("node")
        return None if found else "it is not installed (`make bench` does it)"
    return None


@contextlib.contextmanager
def workers() -> Iterator[dict[str, Worker]]:
    """Give every runner that is there, ready; say of the others why not."""
    with tempfile.TemporaryDirectory() as top:
        workspace = Path(top, "work")
        script = Path(top, "skills/true/scripts/true.sh")
        workspace.mkdir()
        script.parent.mkdir(parents=True)
        script.write_text("#!/bin/true\n")
        script.chmod(0o755)
        script.parent.with_name("SKILL.md").write_text('---\nname: "true"\ndescription: d\n---\n')
        found: dict[str, Worker] = {}
        for kind in KINDS:
            lacking = there(kind)
            if lacking is None:
                worker = Worker(kind, script, workspace)
                lacking = None if worker.ready else "its first run failed"
                found[kind] = worker
            if lacking is not None:
                found.pop(kind, None)
                print(f"{kind} is left out: {lacking}", file=sys.stderr)
        try:
            yield found
        finally:
            for worker in found.values():
                worker.close()


def rows(rounds: int) -> list[Row]:
    """Compare one run after the other with every peer."""
    with workers() as found:
        times: dict[str, list[float]] = {kind: [] for kind in found}
        for number in range(rounds):
            for kind, worker in found.items():
                if number % _SLOW.get(kind, 1) == 0:
                    times[kind].append(worker.seconds(1, 1))
    medians = {kind: statistics.median(taken) for kind, taken in times.items()}
    base = medians["subprocess.run"]
    listed = [
        Row(f"one run of /bin/true: {kind}", "subprocess.run", taken / base, None)
        for kind, taken in medians.items()
    ]
    bounds = {"bubblewrap": None, "sandbox-runtime": 0.35}
    listed += [
        Row(f"one run of /bin/true: {level}", kind, medians[level] / medians[kind], bound)
        for kind, bound in bounds.items()
        for level in ("skillrun level 1", "skillrun level 2")
        if kind in medians and level in medians
    ]
    return listed


def at_once_rows(rounds: int) -> list[Row]:
    """Compare how many runs a second there are with 1, 4, 16 and 64 at once."""
    listed: list[Row] = []
    with workers() as found:
        found.pop("sandbox-runtime", None)
        for at_once in AT_ONCE:
            count = max(32, at_once * 2)
            times: dict[str, list[float]] = {kind: [] for kind in found}
            for _ in range(max(3, rounds // 40)):
                for kind, worker in found.items():
                    times[kind].append(worker.seconds(count, at_once))
            base = statistics.median(times["subprocess.run"])
            for kind, taken in times.items():
                if kind == "subprocess.run":
                    continue
                floor = 0.6 if at_once == 16 and kind.startswith("skillrun") else None
                rate = base / statistics.median(taken)
                listed.append(
                    Row(
                        f"runs a second, {at_once} at once: {kind}", "subprocess.run", rate, None, floor=floor
                    )
                )
    return listed
