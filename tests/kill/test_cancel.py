"""Cancelling: by another thread, by Ctrl-C, by closing the runner; and several adversaries at once."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from adversaries import ADVERSARIES, BY_NAME
from arena import LEVELS, Background, Watch, set_grace

import skillrun.running.pipeline
from skillrun import Runner, Termination

if TYPE_CHECKING:
    from adversaries import Adversary
    from arena import Arena

FEW = (
    "daemon",
    "ignores-term",
    "stops-itself",
    "chain-new-session-each-step",
    "leader-leaves-on-term-member-stays",
    "floods-both-streams",
    "closes-its-output",
    "child-cloned-as-a-sibling",
)

pytestmark = pytest.mark.alone


@pytest.fixture
def drives(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record every drive that the runner makes: its `cancel` is what a handle will offer."""
    made: list[Any] = []
    original = skillrun.running.pipeline.Drive

    def record(*arguments: Any, **named: Any) -> Any:
        made.append(original(*arguments, **named))
        return made[-1]

    monkeypatch.setattr(skillrun.running.pipeline, "Drive", record)
    return made


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize("name", FEW)
def test_cancelled_from_another_thread(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, drives: list[Any], name: str, mode: str
) -> None:
    """The call returns `cancelled` within the grace, with what was printed, and nothing is alive."""
    set_grace(monkeypatch, 0.1)
    arena.script(BY_NAME[name].source)
    with arena.runner(mode) as runner:
        run = Background(runner, timeout=60)
        run.await_ready()
        before = time.monotonic()
        drives[0].cancel()
        result = run.result(within=5)
        took = time.monotonic() - before
        arena.assert_dead()
        drives[0].cancel()  # too late is harmless
    assert result.termination is Termination.CANCELLED
    assert result.error is None
    assert took < 1.4, f"{took:.2f} s"
    arena.assert_clean()


def test_cancelled_before_it_started(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancel that comes before the start is not lost."""
    set_grace(monkeypatch, 0.1)
    arena.script(BY_NAME["ignores-term"].source)
    original = skillrun.running.pipeline.Drive

    def cancelled(*arguments: Any, **named: Any) -> Any:
        made = original(*arguments, **named)
        made.cancel()
        return made

    monkeypatch.setattr(skillrun.running.pipeline, "Drive", cancelled)
    with arena.runner("level-1") as runner:
        result = runner.run("demo", "go.py", timeout=60)
    assert result.termination is Termination.CANCELLED
    assert result.duration_s < 1.5
    arena.assert_clean()


def test_an_init_passes_on_a_cancel_that_came_before_the_script(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At level 2 too it ends the script as it starts, and not after the grace."""
    arena.script("#!/bin/sh\nexec sleep 30\n", name="go.sh")
    original = skillrun.running.pipeline.Drive

    def cancelled(*arguments: Any, **named: Any) -> Any:
        made = original(*arguments, **named)
        made.cancel()
        return made

    monkeypatch.setattr(skillrun.running.pipeline, "Drive", cancelled)
    with arena.runner("level-2") as runner:
        for _ in range(3):
            result = runner.run("demo", "go.sh", timeout=60)
            assert result.termination is Termination.CANCELLED
            assert result.duration_s < 1.5
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
def test_cancelled_at_any_moment(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, drives: list[Any], mode: str
) -> None:
    """There is no moment between start and end at which a cancel is lost, or leaves anything."""
    set_grace(monkeypatch, 0.1)
    seed = int(os.environ.get("SKILLRUN_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    random_ = random.Random(seed)
    arena.script(BY_NAME["ignores-term"].source)
    with arena.runner(mode) as runner:
        runner.launcher.start()
        for turn in range(int(os.environ.get("SKILLRUN_ROUNDS", "15"))):
            drives.clear()
            run = Background(runner, timeout=30)
            while not drives:
                time.sleep(0.0005)
            time.sleep(random_.random() * 0.03)
            drives[0].cancel()
            result = run.result(within=5)
            assert result.termination is Termination.CANCELLED, f"seed {seed}, turn {turn}"
            assert not arena.survivors(), f"seed {seed}, turn {turn}"
    arena.assert_clean()


class _Interrupt(Watch):
    """Sends this process a real SIGINT a moment after the script is ready."""

    def feed(self, chunk: bytes) -> None:
        """Start the clock at the first `ready`."""
        first = not self.ready_event.is_set()
        super().feed(chunk)
        if first and self.ready_event.is_set():
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize("name", FEW[:4])
def test_ctrl_c_in_the_calling_thread(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, name: str, mode: str
) -> None:
    """KeyboardInterrupt comes out of the call only after the tree is dead."""
    if threading.current_thread() is not threading.main_thread():
        pytest.fail("this test needs the main thread: that is where Python delivers signals")
    set_grace(monkeypatch, 0.1)
    arena.script(BY_NAME[name].source)
    with arena.runner(mode) as runner:
        before = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            runner.run("demo", "go.py", timeout=60, sinks=(_Interrupt(), Watch()))
        assert time.monotonic() - before < 2.5
        arena.assert_dead()
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
def test_a_second_ctrl_c_leaves_nothing_open(arena: Arena, mode: str) -> None:
    """An impatient person presses twice, within the two polite seconds: no process, descriptor or folder stays."""

    class Twice(_Interrupt):
        def feed(self, chunk: bytes) -> None:
            first = not self.ready_event.is_set()
            super().feed(chunk)
            if first and self.ready_event.is_set():
                threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()

    arena.script(BY_NAME["ignores-term"].source)
    with arena.runner(mode) as runner, pytest.raises(KeyboardInterrupt):
        runner.run("demo", "go.py", timeout=60, sinks=(Twice(), Watch()))
    time.sleep(0.3)
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
def test_a_sink_that_raises_ends_the_run_first(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """A fault of the caller's own sink comes out of the call, with the script dead and nothing left open."""
    set_grace(monkeypatch, 0.1)

    class Broken(Watch):
        def feed(self, chunk: bytes) -> None:
            raise ZeroDivisionError(len(chunk))

    arena.script(BY_NAME["floods-both-streams"].source)
    with arena.runner(mode) as runner:
        with pytest.raises(ZeroDivisionError):
            runner.run("demo", "go.py", timeout=60, sinks=(Broken(), Broken()))
        arena.assert_dead()
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
def test_closing_the_runner_ends_its_runs(arena: Arena, mode: str) -> None:
    """`close` in one thread while another runs: both come back, and nothing is alive."""
    arena.script(BY_NAME["daemon"].source)
    runner = arena.runner(mode)
    run = Background(runner, timeout=60)
    run.await_ready()
    before = time.monotonic()
    runner.close()
    arena.assert_dead()
    assert run.result(within=3).termination is Termination.CANCELLED
    assert time.monotonic() - before < 3
    arena.assert_clean()


def _round(arena: Arena, runner: Runner, chosen: list[Adversary], timeout: float) -> None:
    """Run adversaries side by side and judge each result."""

    def one(adversary: Adversary) -> str:
        limit = 30.0 if adversary.leaves else timeout
        result = runner.run(adversary.name, "go.py", timeout=limit)
        wanted = Termination.EXITED if adversary.leaves else Termination.TIMED_OUT
        if result.termination is not wanted or result.error is not None:
            return f"{adversary.name}: {result.termination} {result.error}"
        if result.duration_s > (2.5 if adversary.leaves else timeout + 3.0):
            return f"{adversary.name}: {result.duration_s:.2f} s"
        return ""

    with ThreadPoolExecutor(len(chosen)) as pool:
        faults = [fault for fault in pool.map(one, chosen) if fault]
    assert not faults, faults
    arena.assert_dead()


def _rounds() -> int:
    """Return the rounds of the long form: SKILLRUN_ROUNDS, 200 by default."""
    return int(os.environ.get("SKILLRUN_ROUNDS", "200"))


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize(
    "rounds", [2, pytest.param(0, marks=[pytest.mark.slow, pytest.mark.timeout(3600)], id="long")]
)
def test_eight_adversaries_at_once(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str, rounds: int
) -> None:
    """In rounds, eight side by side: each ends as it should, and none disturbs another."""
    set_grace(monkeypatch, 0.1)
    for adversary in ADVERSARIES:
        arena.script(adversary.source, skill=adversary.name)
    with arena.runner(mode) as runner:
        runner.launcher.start()
        for number in range(rounds or _rounds()):
            start = number * 8 % len(ADVERSARIES)
            chosen = [*ADVERSARIES, *ADVERSARIES][start : start + 8]
            _round(arena, runner, chosen, timeout=1.0)
    arena.assert_clean()


def test_the_oracle_sees_a_survivor(arena: Arena) -> None:
    """A check of the tests themselves: a process that carries the token is found, one that does not is not."""
    script = arena.script(BY_NAME["daemon"].source)
    from arena import plain

    with plain(arena, script) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert len(arena.survivors()) == 2
        with pytest.raises(AssertionError):
            arena.assert_dead()
    assert not arena.survivors()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
