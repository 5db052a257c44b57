"""Calls: tools called beside the loop, each in a thread, told of and ended from the loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from skillrun.tools.underway import Underway, watched

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.session import ServerSession

    from skillrun.tools.events import Progress
    from skillrun.tools.outcome import Outcome, ToolCall

MOST_WAITING: Final = 1_000
"""Calls that may wait for their turn: a bound on memory."""
_PENDING: Final = 32  # progress that is kept until it is told; older words are dropped, the newest count
_PAUSE: Final = 0.02  # seconds between two notifications of one call


class BusyError(Exception):
    """Too many calls wait already."""


class Calls:
    """Makes calls, at most `at_once` at a time. A call that is cancelled is over only when its run is dead."""

    def __init__(self, at_once: int) -> None:
        self._limiter = anyio.CapacityLimiter(at_once)
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="skillrun-mcp")
        self._reports: dict[str, Report] = {}
        self._numbers = itertools.count(1)

    def new_id(self) -> str:
        """Return an id of our own: those of two clients may be equal."""
        return f"call-{next(self._numbers)}"

    def progressed(self, call: ToolCall, progress: Progress) -> None:
        """Take what a tool says about its work, in the tool's own thread."""
        report = self._reports.get(call.id)
        if report is not None:
            report.add(progress)

    async def make(
        self, call_id: str, run: Underway, work: Callable[[], Outcome], session: ServerSession
    ) -> Outcome:
        """Do the work in a thread and tell the client of its progress.

        When the caller is cancelled the run is ended, and the cancellation goes on once nothing is left of it.
        Raises BusyError when too many wait.
        """
        if self._limiter.statistics().tasks_waiting >= MOST_WAITING:
            raise BusyError
        report = Report(session)
        async with self._limiter:
            self._reports[call_id] = report
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(report.tell)
                    outcome = await self._threaded(run, work)
                    group.cancel_scope.cancel()
            finally:
                del self._reports[call_id]
        await report.rest()
        return outcome

    async def _threaded(self, run: Underway, work: Callable[[], Outcome]) -> Outcome:
        def watching() -> Outcome:
            with watched(run):
                return work()

        context = contextvars.copy_context()
        future = asyncio.get_running_loop().run_in_executor(self._threads, context.run, watching)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            run.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([future])
            future.exception()  # looked at: nobody else will
            raise

    def close(self) -> None:
        """Let the threads go; whatever ran in them has been ended."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Report:
    """Tells one client of the progress of one call: numbers that only rise, not too often (MCP 2026-07-28)."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._pending: deque[Progress] = deque(maxlen=_PENDING)
        self._news = asyncio.Event()
        self._last = -math.inf

    def add(self, progress: Progress) -> None:
        """Take progress, from any thread; never waits."""
        with contextlib.suppress(RuntimeError):  # the loop was closed
            self._loop.call_soon_threadsafe(self._take, progress)

    def _take(self, progress: Progress) -> None:
        self._pending.append(progress)
        self._news.set()

    async def tell(self) -> None:
        """Tell what comes, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._pending:
                # A cancel in the middle must neither lose a word nor have it told twice, the second time with another number.
                with anyio.CancelScope(shield=True):
                    await self._send(self._pending.popleft())
                await anyio.sleep(_PAUSE)

    async def rest(self) -> None:
        """Tell what is left, before the result."""
        await anyio.lowlevel.checkpoint()  # what the thread has said last is on its way
        while self._pending:
            await self._send(self._pending.popleft())

    async def _send(self, progress: Progress) -> None:
        value = self._rising(progress.value)
        await self._session.report_progress(value, progress.total, progress.message)

    def _rising(self, value: float | None) -> float:
        """Return a number above the last one: a script may count down or say a message alone."""
        if value is None:
            value = 0.0 if self._last == -math.inf else math.nextafter(self._last, math.inf)
        elif value <= self._last:
            value = math.nextafter(self._last, math.inf)
        self._last = float(value)
        return self._last
