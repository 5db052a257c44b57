"""Flooding: a script that prints 1 GB: how fast it is drained, and how much memory that takes."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Row
from skillrun import Call, Runner, current_host

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZE = 1 << 30


def peak(do: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds something took and the MB by which the peak of this process grew (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _high()
    began = time.perf_counter()
    do()
    return time.perf_counter() - began, (_high() - before) / 1024


def _high() -> int:
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1])


def drained(command: list[str]) -> None:
    """Read all that a program prints and keep nothing: the floor."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        while process.stdout.read(65536):
            pass


def rows(rounds: int) -> list[Row]:
    """Compare with a loop that reads and forgets; the memory of `subprocess.run` is all of it, and is not tried."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as top:
        script = Path(top, "skills/flood/scripts/go.sh")
        script.parent.mkdir(parents=True)
        script.write_text(f"#!/bin/sh\nexec head -c {_SIZE} /dev/zero\n")
        script.chmod(0o755)
        script.parent.with_name("SKILL.md").write_text("---\nname: flood\ndescription: d\n---\n")
        Path(top, "work").mkdir()
        for level in (1, 2):
            with Runner(
                workspace=Path(top, "work"),
                skills=[Path(top, "skills")],
                host=current_host(),
                backend=f"linux-{level}",
            ) as runner:
                if level == 2 and not runner.launcher.probe().level2:
                    continue
                times: dict[str, list[float]] = {"plain": [], "skillrun": []}
                grown = 0.0
                for _ in range(max(2, rounds // 60)):
                    times["plain"].append(peak(lambda: drained([str(script)]))[0])
                    taken, more = peak(lambda runner=runner: _checked(runner))  # type: ignore[misc]
                    times["skillrun"].append(taken)
                    grown = max(grown, more)
            ratio = statistics.median(times["skillrun"]) / statistics.median(times["plain"])
            found.append(Row(f"1 GB of output, level {level}", "reading and forgetting it", ratio, None))
            found.append(
                Row(f"1 GB of output, level {level}: memory added", "16 MB", grown / 16, 1, f"{grown:.1f} MB")
            )
    return found


def _checked(runner: Runner) -> None:
    result = runner.run_call(Call("flood"))
    assert result.stdout.bytes == _SIZE, result.error
