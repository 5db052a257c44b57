"""Pool: calls of Python tools that are marked process-safe, in processes of their own."""

from __future__ import annotations

import pickle
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from skillrun.tools.outcome import ToolCall, ToolError, spoken
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ProcessPoolExecutor

    from skillrun.tools.dispatch import Dispatcher
    from skillrun.tools.outcome import Outcome


class ProcessPool:
    """Runs process-safe tools elsewhere, started when the first one is called.

    Such a tool is a class that can be imported by its name; it is made anew for each call, without an owner, so it
    must not rely on what it was given. Anything else runs where it is called.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._lock = threading.Lock()
        self._executor: ProcessPoolExecutor | None = None

    def call(self, dispatcher: Dispatcher, tool: Tool, call: ToolCall) -> Outcome:
        """Call a tool, elsewhere where it may."""
        return dispatcher.call(tool, call, call.arguments, run=self.runs(tool))

    def runs(self, tool: Tool) -> Callable[[ToolCall, dict[str, Any]], Outcome]:
        """Return what runs a tool: elsewhere where it may, else here."""
        return partial(self._run, tool) if _movable(tool) else tool.run

    def _run(self, tool: Tool, call: ToolCall, arguments: dict[str, Any]) -> Outcome:
        """Run one call in another process. Raises ToolError when that process died."""
        from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415 - most programs have no such tool

        executor = self._started()
        try:
            return executor.submit(_work, type(tool), call, arguments).result()
        except BrokenProcessPool:
            with self._lock:
                if self._executor is executor:
                    self._executor = None
            executor.shutdown(wait=False, cancel_futures=True)
            raise ToolError("the process it ran in died", retryable=True) from None

    def _started(self) -> ProcessPoolExecutor:
        import multiprocessing  # noqa: PLC0415 - most programs have no such tool
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - see above

        with self._lock:  # two first calls at a time would start two pools, and one would never be ended
            if self._executor is None:
                # `spawn`: a fork of a process with threads can stop for ever, and would hold our pipes open.
                context = multiprocessing.get_context("spawn")
                self._executor = ProcessPoolExecutor(self._workers, mp_context=context)
            return self._executor

    def close(self) -> None:
        """End the processes."""
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None


def _movable(tool: Tool) -> bool:
    """Whether a tool is marked, and its class can be found by name and made of nothing in another process."""
    kind = type(tool)
    named = "<" not in kind.__qualname__ and kind.__module__ != "__main__"
    return tool.process_safe and named and kind.__init__ is Tool.__init__


def _work(kind: type[Tool], call: ToolCall, arguments: dict[str, Any]) -> Outcome:
    """Make the tool anew, in the other process, which has imported its class by name."""
    try:
        return kind().run(call, arguments)
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever a tool raises has to arrive
        raise _sendable(problem) from None


def _sendable(problem: BaseException) -> BaseException:
    """Return an exception that arrives; one that can't be made anew would break the pool for every other call."""
    try:
        pickle.loads(pickle.dumps(problem))  # noqa: S301 - what was written a moment ago
    except Exception:  # noqa: BLE001 - pickling runs the exception's own code
        return ToolError(spoken(problem))
    return problem
