"""Awaiting: a run as a coroutine of asyncio, with nothing left behind when it is cancelled."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillrun.launch.result import Result
    from skillrun.running.handle import Handle
    from skillrun.running.listener import OnOutput

_LOOK: Final = 0.5  # seconds between two looks whether the loop that a callback belongs to still lives


async def awaited(start: Callable[[OnOutput | None], Handle], on_output: OnOutput | None) -> Result:
    """Start a run and wait for its result without blocking the loop.

    When the task is cancelled the run is, and CancelledError is raised only once nothing of it is left.
    """
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    handle = start(None if on_output is None else _in_loop(loop, on_output))

    def told() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits there any more
            loop.call_soon_threadsafe(over.set)

    handle.when_done(told)
    try:
        await over.wait()
    except asyncio.CancelledError:
        handle.cancel()
        while not over.is_set():
            with contextlib.suppress(
                asyncio.CancelledError
            ):  # cancelled once more: it is being ended already
                await over.wait()
        raise
    return handle.wait(0)


def _in_loop(loop: asyncio.AbstractEventLoop, told: OnOutput) -> OnOutput:
    """Have a callback called in the loop's thread; the run waits for it, so that nothing piles up."""

    def tell(stream: str, chunk: bytes) -> None:
        answer: concurrent.futures.Future[None] = concurrent.futures.Future()

        def call() -> None:
            try:
                told(stream, chunk)
            except BaseException as problem:  # noqa: BLE001 - it comes out of the call that it belongs to
                answer.set_exception(problem)
            else:
                answer.set_result(None)

        loop.call_soon_threadsafe(call)
        while not answer.done():
            concurrent.futures.wait([answer], _LOOK)
            if loop.is_closed() and not answer.done():
                raise RuntimeError("the loop was closed while a run told of its output")
        answer.result()

    return tell
