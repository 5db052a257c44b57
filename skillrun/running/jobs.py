"""Jobs: work that goes on beside whoever started it, for as long as the runner lives."""

from __future__ import annotations

import contextvars
import secrets
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from skillrun.errors import AdmissionError
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Callable

MOST: Final = 64
"""Jobs under way at a time: each holds a thread, and a script that only sleeps holds no more."""
KEPT: Final = 1_000
"""Jobs that are over and whose end nobody has fetched; the oldest are forgotten first."""
TAIL: Final = 4_000
"""Bytes of the output so far that are kept of each job, the last ones."""


class Job:
    """One piece of work in a thread of its own. Thread-safe."""

    def __init__(self, end: Callable[[], object]) -> None:
        self.token = secrets.token_hex(16)
        self._end = end
        # Not a future of `concurrent`: it brings logging, which the command line does without.
        self._over = threading.Event()
        self._result: Any = None
        self._problem: BaseException | None = None
        self._tail = bytearray()
        self._lock = threading.Lock()

    @property
    def done(self) -> bool:
        """Whether it is over."""
        return self._over.is_set()

    def output(self) -> str:
        """Return the end of what was put out so far."""
        with self._lock:
            return bytes(self._tail).decode("utf-8", "replace")

    def result(self) -> Any:
        """Wait for the end, and return or raise what came of it."""
        self._over.wait()
        if self._problem is not None:
            raise self._problem
        return self._result

    def cancel(self) -> None:
        """Ask for its end; it is over when `done` says so."""
        self._end()

    def told(self, _stream: str, chunk: bytes) -> None:
        """Take output."""
        with self._lock:
            self._tail += chunk
            del self._tail[:-TAIL]

    def work(self, work: Callable[[Job], Any]) -> None:
        """Do the work, in the job's own thread."""
        try:
            self._result = work(self)
        except BaseException as problem:  # noqa: BLE001 - it comes out of `result`
            self._problem = problem
        self._over.set()


class Jobs:
    """The jobs of one runner, found by their tokens. In a forked copy of the process there are none of them."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, work: Callable[[Job], Any], *, end: Callable[[], object]) -> Job:
        """Start work in a thread that sees the caller's context; `end` ends it. Raises AdmissionError when too many go on."""
        job = Job(end)
        with self._lock:
            going = sum(not one.done for one in self._jobs.values())
            if going >= MOST:
                message = f"{going} scripts run in the background already"
                raise AdmissionError(error("too-many-jobs", message, help="wait for one of them to end"))
            self._jobs[job.token] = job
            over = [token for token, one in self._jobs.items() if one.done]
            for token in over[: max(0, len(over) - KEPT)]:
                del self._jobs[token]
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(job.work, work), name="skillrun-job", daemon=True)
        thread.start()
        return job

    def find(self, token: object) -> Job | None:
        """Return a job; None for one that this process does not have, or whose end was fetched."""
        with self._lock:
            return self._jobs.get(token) if isinstance(token, str) else None

    def forget(self, job: Job) -> None:
        """Let go of a job whose end was fetched."""
        with self._lock:
            self._jobs.pop(job.token, None)

    def close(self) -> None:
        """End all of them. They are over soon: their runs are, once the launcher is closed."""
        with self._lock:
            found = list(self._jobs.values())
        for job in found:
            if not job.done:
                job.cancel()
