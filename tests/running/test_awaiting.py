"""A run as a coroutine: the loop stays free, and a cancelled task leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import pytest
from adversaries import BY_NAME
from arena import LEVELS, set_grace

from skillrun import AdmissionError, Call, Termination, UsageError

if TYPE_CHECKING:
    from arena import Arena


def test_the_loop_stays_free(arena: Arena) -> None:
    """Many runs at once in one loop, each with its own result; the loop ticks meanwhile."""
    arena.script("#!/bin/sh\nsleep 0.1\necho $1\n", name="go.sh")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def main() -> list[str]:
        ticking = asyncio.create_task(tick())
        results = await asyncio.gather(
            *(runner.arun(Call("demo", arguments=(str(n),), timeout=60)) for n in range(8))
        )
        ticking.cancel()
        return [result.stdout.text for result in results]

    with arena.runner(at_once=3) as runner:
        assert asyncio.run(main()) == [f"{n}\n" for n in range(8)]
    assert ticks > 5
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize(
    "name", ["ignores-term", "daemon", "floods-both-streams", "chain-new-session-each-step"]
)
def test_cancelling_kills_the_tree(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, name: str, mode: str
) -> None:
    """CancelledError comes when nothing is left, also when the task is cancelled again and again."""
    set_grace(monkeypatch, 0.1)
    arena.script(BY_NAME[name].source)

    async def main() -> None:
        ready = asyncio.Event()
        task = asyncio.create_task(runner.arun(Call("demo", timeout=60), on_output=lambda *_: ready.set()))
        await asyncio.wait_for(ready.wait(), 10)
        task.cancel()
        await asyncio.sleep(0.01)
        task.cancel()
        before = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        arena.assert_dead()
        assert time.monotonic() - before < 3

    with arena.runner(mode) as runner:
        asyncio.run(main())
    arena.assert_clean()


def test_a_timeout_of_the_caller(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """`asyncio.wait_for` works, and the run is dead when it raises."""
    set_grace(monkeypatch, 0.1)
    arena.script(BY_NAME["daemon"].source)

    async def main() -> None:
        with pytest.raises((TimeoutError, asyncio.TimeoutError)):
            await asyncio.wait_for(runner.arun(Call("demo", timeout=60)), 0.5)
        arena.assert_dead()

    with arena.runner() as runner:
        asyncio.run(main())
    arena.assert_clean()


def test_cancelled_while_it_waits_for_its_turn(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand waiting coroutines take no threads; cancelling them starts nothing and frees the queue."""
    set_grace(monkeypatch, 0.1)
    arena.script("print('ready', flush=True)\nimport time; time.sleep(30)")

    async def main() -> None:
        first = asyncio.create_task(runner.arun(Call("demo", timeout=60)))
        await asyncio.sleep(0.05)
        before = threading.active_count()
        waiting = [asyncio.create_task(runner.arun(Call("demo"))) for _ in range(1_000)]
        await asyncio.sleep(0.05)
        assert threading.active_count() <= before
        with pytest.raises(AdmissionError, match="1000 wait"):
            await runner.arun(Call("demo"))
        for task in waiting:
            task.cancel()
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ends)
        assert not runner._admission._door.get().queue
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first

    with arena.runner(at_once=1) as runner:
        asyncio.run(main())
    arena.assert_clean()


def test_output_is_told_in_the_loop(arena: Arena) -> None:
    """Callbacks run in the loop's own thread and need no locks; one that raises ends the run with that."""
    arena.script("#!/bin/sh\necho one; echo two >&2\n", name="go.sh")
    arena.script(BY_NAME["floods-both-streams"].source, skill="flood")
    told: list[tuple[str, bytes, int]] = []

    def broken(_: str, __: bytes) -> None:
        raise ValueError("a callback's own")

    async def main() -> None:
        result = await runner.arun(
            Call("demo"), on_output=lambda name, chunk: told.append((name, chunk, threading.get_ident()))
        )
        assert result.termination is Termination.EXITED
        with pytest.raises(ValueError, match="a callback's own"):
            await runner.arun(Call("flood", timeout=30), on_output=broken)
        with pytest.raises(UsageError):
            await runner.arun(Call("nobody"))

    with arena.runner() as runner:
        asyncio.run(main())
    assert sorted(told) == [
        ("stderr", b"two\n", threading.get_ident()),
        ("stdout", b"one\n", threading.get_ident()),
    ]
    arena.assert_clean()


def test_the_loop_ends_during_a_run(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that leaves its loop with a run under way ends it first: asyncio cancels what is left."""
    set_grace(monkeypatch, 0.1)
    arena.script(BY_NAME["ignores-term"].source)
    kept: list[asyncio.Task[object]] = []

    async def main() -> None:
        kept.append(asyncio.create_task(runner.arun(Call("demo", timeout=60))))
        await asyncio.sleep(0.3)

    with arena.runner() as runner:
        asyncio.run(main())
        arena.assert_dead()
    assert kept[0].cancelled()
    arena.assert_clean()
