"""Many runs: no zombie, no stuck call, nothing that grows."""

from __future__ import annotations

import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from arena import MODES, Holdings, children, launcher_pid, scratches, set_grace, state, warden_pid, zombies

from skillrun import Termination

if TYPE_CHECKING:
    from arena import Arena


def _dead(pid: int) -> list[int]:
    """List the unreaped dead children of a process."""
    return [child for child in children(pid) if state(child) == "Z"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("runs", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_many_runs_half_of_them_timeouts(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str, runs: int
) -> None:
    """Case B-21: no zombie of ours, of the launcher's or of the warden's; somebody else's child is not reaped."""
    set_grace(monkeypatch, 0.1)
    arena.script("#!/bin/sh\n(sleep 60 &)\nexec sleep 60\n", name="long.sh")
    arena.script("#!/bin/sh\n(true &)\nexit 0\n", name="short.sh")
    foreign = os.fork()
    if foreign == 0:
        os._exit(7)
    with arena.runner(mode) as runner:
        runner.launcher.start()

        def one(number: int) -> bool:
            result = runner.run(
                "demo", "long.sh" if number % 2 else "short.sh", timeout=0.05 if number % 2 else 20
            )
            return result.termination is (Termination.TIMED_OUT if number % 2 else Termination.EXITED)

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(one, range(runs)))
        assert set(zombies()) - arena.holdings.zombies == {foreign}
        assert not _dead(launcher_pid(runner))
        assert not _dead(warden_pid(runner))
        assert len(children(launcher_pid(runner))) <= 2, "only the spares"
    assert os.waitstatus_to_exitcode(os.waitpid(foreign, 0)[1]) == 7
    arena.assert_clean()


def _threads(arena: Arena, mode: str, threads: int, runs: int) -> None:
    """Run from many threads while another logs in a loop."""
    arena.script("#!/bin/sh\necho $1\n", name="go.sh")
    logger = logging.getLogger("test.endurance")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
    stop = threading.Event()

    def log() -> None:
        while not stop.is_set():
            logger.warning("a lock is taken and let go")

    wrong: list[object] = []
    latest = [time.monotonic()]  # when a call last returned: a slow machine is no hang

    def work(runner: object, number: int) -> None:
        for turn in range(runs):
            word = f"{number}-{turn}"
            result = runner.run("demo", "go.sh", [word], timeout=60)  # type: ignore[attr-defined]
            if (result.termination, result.stdout.text) != (Termination.EXITED, word + "\n"):
                wrong.append(result)
            latest[0] = time.monotonic()

    with arena.runner(mode) as runner:
        logging_thread = threading.Thread(target=log)
        logging_thread.start()
        try:
            pool = [
                threading.Thread(target=work, args=(runner, number), daemon=True) for number in range(threads)
            ]
            for thread in pool:
                thread.start()
            for thread in pool:
                while thread.is_alive() and time.monotonic() < latest[0] + 60:
                    thread.join(0.5)
            assert not any(thread.is_alive() for thread in pool), "a call hangs"
        finally:
            stop.set()
            logging_thread.join()
        assert not wrong, wrong[:2]
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("runs", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_twenty_threads_while_another_logs(arena: Arena, mode: str, runs: int) -> None:
    """Case B-22: no call hangs, and each result belongs to its own call."""
    _threads(arena, mode, 20, runs)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("runs", [60, pytest.param(3000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_nothing_grows(arena: Arena, mode: str, runs: int) -> None:
    """Descriptors, children and memory of owner, launcher and warden are the same after many runs as after a few."""
    arena.script("#!/bin/sh\n(sleep 5 &)\nhead -c 100000 /dev/zero\n", name="go.sh")

    def at_rest(pids: list[int]) -> list[int]:
        """Count descriptors once the launcher has made what the next run needs, of which it holds some.

        That depends on how the last runs came: here one by one, so that a world waits at level 2.
        """
        for _ in range(3):
            time.sleep(0.1)
            runner.run("demo", "go.sh")
        time.sleep(0.2)
        return [len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids]

    def resident(pid: int) -> int:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096

    with arena.runner(mode) as runner:
        runner.launcher.start()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: runner.run("demo", "go.sh"), range(30)))
            held = Holdings.now()
            parts = [launcher_pid(runner), warden_pid(runner)]
            fds = at_rest(parts)
            sizes = [resident(pid) for pid in parts]
            results = list(pool.map(lambda _: runner.run("demo", "go.sh").leftovers, range(runs)))
            assert not held.leaked()
            assert at_rest(parts) == fds
            for pid, size in zip(parts, sizes, strict=True):
                assert resident(pid) - size < 1 << 20
        assert all(results)
        assert not scratches(runner)
    arena.assert_clean()
