"""Ending: from the wish to the proof that everything is dead and every pipe closed."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import skillrun.sandbox.wire
from bench.measure import Row
from skillrun import Call, Runner, current_host

_SLEEP = "#!/bin/sh\nexec sleep 100\n"
_TREE = (
    "#!/bin/sh\ntrap '' TERM\nfor n in 1 2 3 4 5 6 7 8 9 10; do (setsid sleep 100 &); done\nexec sleep 100\n"
)


def plain() -> float:
    """Kill and reap one `sleep` and read its pipe to the end: the least that anybody can do."""
    with subprocess.Popen(["sleep", "100"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        time.sleep(0.02)
        began = time.perf_counter()
        process.kill()
        process.wait()
        process.stdout.read()
        return time.perf_counter() - began


def ended(runner: Runner, skill: str) -> float:
    """Cancel a run and wait for its result."""
    handle = runner.start(Call(skill))
    while handle.pid is None:
        time.sleep(0.001)
    time.sleep(0.1)
    began = time.perf_counter()
    handle.cancel()
    handle.wait()
    return time.perf_counter() - began


def rows(rounds: int) -> list[Row]:
    """Compare one process and a tree that ignores TERM, its grace taken away, with a plain kill."""
    skillrun.sandbox.wire.GRACE = 0.0  # type: ignore[misc] # what is polite is not what is measured
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as top:
        for name, source in (("sleep", _SLEEP), ("tree", _TREE)):
            script = Path(top, f"skills/{name}/scripts/go.sh")
            script.parent.mkdir(parents=True)
            script.write_text(source)
            script.parent.with_name("SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\n")
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
                times: dict[str, list[float]] = {"plain": [], "sleep": [], "tree": []}
                for _ in range(max(10, rounds // 10)):
                    times["plain"].append(plain())
                    times["sleep"].append(ended(runner, "sleep"))
                    times["tree"].append(ended(runner, "tree"))
            base = statistics.median(times["plain"])
            what = {"sleep": "one sleep", "tree": "eleven that ignore TERM"}
            found += [
                Row(
                    f"time to dead, level {level}: {words}",
                    "kill -9 of one sleep",
                    statistics.median(times[name]) / base,
                    5,
                )
                for name, words in what.items()
            ]
    return found
