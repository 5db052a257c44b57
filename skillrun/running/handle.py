"""Handle: a run that goes on beside its caller, in a thread of its own."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import TYPE_CHECKING

from skillrun.errors import AdmissionError
from skillrun.launch.faults import LauncherError
from skillrun.problem import error
from skillrun.running.listener import Listener

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillrun.launch.drive import Drive
    from skillrun.launch.result import Result
    from skillrun.running.admission import Admission, Turn
    from skillrun.running.listener import OnOutput


class Handle:
    """A run that was started: wait for it, cancel it, learn its process id. Thread-safe.

    The thread is a daemon: when the program ends, the launcher ends what is still under way.
    """

    def __init__(
        self, admission: Admission, work: Callable[[Listener], Result], *, on_output: OnOutput | None = None
    ) -> None:
        self._future: concurrent.futures.Future[Result] = concurrent.futures.Future()
        self._lock = threading.Lock()
        self._drive: Drive | None = None
        self._cancelled = False
        self._pid: int | None = None
        self._work = work
        self._listener = Listener(on_output=on_output, on_drive=self._attach, on_start=self._started)
        self._turn = admission.ask(self._taken)

    @property
    def pid(self) -> int | None:
        """The process id of what the launcher started, as this process sees it; None before the start."""
        return self._pid

    @property
    def done(self) -> bool:
        """Whether nothing of the run is left, and its result is there."""
        return self._future.done()

    def wait(self, timeout: float | None = None) -> Result:
        """Return the result when nothing of the run is left; raises what `Runner.run` raises.

        Raises TimeoutError after `timeout` seconds; the run goes on. Raises AdmissionError when the run
        was cancelled before its turn.
        """
        try:
            return self._future.result(timeout)
        except concurrent.futures.TimeoutError:
            if self._future.done():
                raise  # a callback's own
            raise TimeoutError(f"the run is not over after {timeout} s") from None

    def cancel(self) -> None:
        """Ask for the run to be ended: its tree gets the grace, then SIGKILL. `wait` still tells what came of it."""
        with self._lock:
            self._cancelled = True
            drive = self._drive
        if drive is not None:
            drive.cancel()
        elif self._turn.leave():
            message = "the run was cancelled before it was its turn; nothing was started"
            self._future.set_exception(AdmissionError(error("cancelled-waiting", message)))

    def when_done(self, told: Callable[[], object]) -> None:
        """Have something called once the run is over, in whichever thread sees its end."""
        self._future.add_done_callback(lambda _: told())

    @property
    def future(self) -> concurrent.futures.Future[Result]:
        """The result to come, for `concurrent.futures.wait`. Cancelling it does not cancel the run."""
        return self._future

    def _taken(self, turn: Turn) -> bool:
        """Start the thread; without one, or when the runner was closed, the turn goes to the next."""
        if turn.refusal is not None:
            self._future.set_exception(turn.refusal)
            return False
        try:
            threading.Thread(target=self._drive_it, args=(turn,), name="skillrun", daemon=True).start()
        except RuntimeError as problem:  # "can't start new thread": the limit of processes, or of memory
            message = f"no thread could be started for a run: {problem}"
            self._future.set_exception(LauncherError(error("out-of-resources", message)))
            return False
        return True

    def _drive_it(self, turn: Turn) -> None:
        """Do the work of the thread."""
        try:
            result = self._work(self._listener)
        except BaseException as problem:  # noqa: BLE001 - it comes out of `wait`
            turn.leave()
            self._future.set_exception(problem)
        else:
            turn.leave()
            self._future.set_result(result)

    def _attach(self, drive: Drive) -> None:
        """Take what can cancel the run; a cancel that came before is passed on."""
        with self._lock:
            self._drive = drive
            cancelled = self._cancelled
        if cancelled:
            drive.cancel()

    def _started(self, pid: int) -> None:
        self._pid = pid
