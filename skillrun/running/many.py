"""Many: calls that are made a few at once, here or by an executor, each with exactly one reply."""

from __future__ import annotations

import concurrent.futures
from typing import TYPE_CHECKING

from skillrun.errors import SkillrunError, UsageError
from skillrun.problem import error
from skillrun.running.call import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from skillrun.launch.result import Result
    from skillrun.running.call import Call
    from skillrun.running.handle import Handle

    Future = concurrent.futures.Future[Result]


def replies(
    calls: Iterable[Call],
    submit: Callable[[Call], Future],
    abandon: Callable[[Iterable[Future]], None],
    *,
    limit: int,
) -> Iterator[Reply]:
    """Make calls, at most `limit` at once, and give each reply as it comes.

    Calls are taken from the iterable only when there is room, so that any number costs no memory. When
    the caller stops listening, or an exception comes from outside, what is under way is abandoned.
    """
    if limit < 1:
        raise UsageError(
            error("limit", f"{limit} calls at once is no number of calls", help="allow at least one")
        )
    pending: dict[Future, tuple[int, Call]] = {}
    try:
        for index, call in enumerate(calls):
            while len(pending) >= limit:
                yield from _ended(pending)
            try:
                pending[submit(call)] = index, call
            except Exception as problem:  # noqa: BLE001 - one call that can't be made loses no other
                yield Reply(index, call, error=_told(problem))
        while pending:
            yield from _ended(pending)
    finally:
        abandon(pending)


def _ended(pending: dict[Future, tuple[int, Call]]) -> Iterator[Reply]:
    """Wait until some have ended, and give their replies."""
    done, _ = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
    for future in sorted(done, key=pending.__getitem__):
        index, call = pending.pop(future)
        try:
            yield Reply(index, call, result=future.result())
        except concurrent.futures.CancelledError:
            cancelled = error("worker-cancelled", "the executor dropped the call; it may have been running")
            yield Reply(index, call, error=SkillrunError(cancelled))
        except Exception as problem:  # noqa: BLE001 - it is this call's reply
            yield Reply(index, call, error=_told(problem))


def _told(problem: Exception) -> SkillrunError:
    """Turn whatever a call raised into an error that names it."""
    if isinstance(problem, SkillrunError):
        return problem
    if isinstance(problem, concurrent.futures.BrokenExecutor):
        message = f"the worker that had the call is gone, and it is not made again: {problem}"
        return SkillrunError(
            error("worker-lost", message, help="look whether it ran before you make it again")
        )
    return SkillrunError(error("internal", f"{type(problem).__name__}: {problem}"))


class Here:
    """Makes calls in this process, and ends them all when they are abandoned."""

    def __init__(self, start: Callable[[Call], Handle]) -> None:
        self._start = start
        self._handles: dict[Future, Handle] = {}

    def submit(self, call: Call) -> Future:
        """Start a call."""
        handle = self._start(call)
        self._handles[handle.future] = handle
        handle.future.add_done_callback(lambda future: self._handles.pop(future, None))
        return handle.future

    def abandon(self, futures: Iterable[Future]) -> None:
        """Cancel what is under way and wait for its end."""
        left = list(futures)
        for future in left:
            handle = self._handles.get(future)
            if handle is not None:
                handle.cancel()
        concurrent.futures.wait(left)
