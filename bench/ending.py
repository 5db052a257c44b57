"""Ending: from the wish to the proof that everything is dead and every pipe closed."""

from __future__ import annotations

import os
import select
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

import skillrun.sandbox.wire
from bench.measure import Row
from skillrun import Call, Runner, current_host

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def ended(runner: Runner, skill: str) -> tuple[float, float]:
    """Cancel a run; return the seconds until every process of it is dead, and until its result is there.

    A dead process has closed its ends of every pipe before its pidfd tells of it.
    """
    handle = runner.start(Call(skill))
    while handle.pid is None:
        time.sleep(0.001)
    time.sleep(0.1)
    deaths = [os.pidfd_open(pid) for pid in processes(handle.pid)]
    began = time.perf_counter()
    handle.cancel()
    wait_for(deaths)
    dead = time.perf_counter() - began
    handle.wait()
    told = time.perf_counter() - began
    for death in deaths:
        os.close(death)
    return dead, told


def processes(leader: int) -> set[int]:
    """Return the processes of a run: what is below its leader, and what its group was left to the launcher."""
    found = {leader, *(child.pid for child in psutil.Process(leader).children(recursive=True))}
    for orphan in psutil.Process(leader).parent().children():  # type: ignore[union-attr] # the launcher
        if os.getpgid(orphan.pid) == leader:
            found |= {orphan.pid, *(child.pid for child in orphan.children(recursive=True))}
    return found


def wait_for(deaths: Iterable[int]) -> None:
    """Wait until all of them are dead."""
    waiter = select.poll()
    left = set(deaths)
    for death in left:
        waiter.register(death, select.POLLIN)
    while left:
        for death, _ in waiter.poll():
            waiter.unregister(death)
            left.discard(death)


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
                plains: list[float] = []
                times: dict[str, list[tuple[float, float]]] = {"sleep": [], "tree": []}
                for _ in range(max(10, rounds // 4)):
                    plains.append(plain())
                    for name, taken in times.items():
                        taken.append(ended(runner, name))
            base = statistics.median(plains)
            what = {"sleep": "one sleep", "tree": "eleven that ignore TERM"}
            for name, words in what.items():
                dead, told = (statistics.median(one) / base for one in zip(*times[name], strict=True))
                found.append(Row(f"time to dead, level {level}: {words}", "kill -9 of one sleep", dead, 5))
                found.append(
                    Row(f"time to the result, level {level}: {words}", "kill -9 of one sleep", told, None)
                )
    return found
