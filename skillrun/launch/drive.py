"""Drive one run from its request to the proof of its end: feed, drain, wait, cancel."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillrun.launch.faults import named
from skillrun.launch.orphans import end_group, end_world
from skillrun.launch.pump import OVER, Pump, make_room
from skillrun.sandbox.wire import GRACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from skillrun.launch.capture import Captured, Sink
    from skillrun.launch.launcher import Launcher, Sent
    from skillrun.launch.scratches import Place
    from skillrun.launch.session import Session
    from skillrun.sandbox.backend import LaunchPlan

_MARGIN = 10.0  # seconds beyond deadline and grace after which the launcher itself is given up
_NO_ROOM = {  # the control socket was dropped, by a launcher that lives
    "event": "failed",
    "stage": "request",
    "errno": None,
    "message": "the launcher has no descriptors left",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run: the launcher's last word, and both streams.

    `ended` is None when the launcher died before it could say how the run ended.
    """

    ended: Mapping[str, Any] | None
    stdout: Captured
    stderr: Captured
    duration: float


@dataclass(slots=True)
class Drive:
    """The owner's side of one run, driven by one thread; `cancel` may be called from any."""

    launcher: Launcher | Session
    plan: LaunchPlan
    stdin: bytes
    stdout: Sink
    stderr: Sink
    on_start: Callable[[int], None] | None = None
    scratch: Path | None = None  # the folder that the plan names; None when it names none
    events: Sink | None = None  # takes what the script writes to descriptor 3; None: it has none
    upcoming: Place | None = None  # the scratch folder of the next run, where it is known
    meanwhile: Callable[[], None] | None = None  # what to do while the script starts
    told: Callable[[], int] | None = None  # gives the socket over which a traced run sends its listener
    source: int | None = (
        None  # what is read from it goes to stdin as it comes, behind the bytes; its owner closes it
    )
    _control: socket.socket | None = None
    _cancelled: bool = False
    _closing: threading.Lock = field(default_factory=threading.Lock)
    _started: float = field(default_factory=time.monotonic)

    @contextlib.contextmanager
    def running(self) -> Iterator[Outcome]:
        """Start the script and give its outcome once nothing that it started is alive; leave with the proof of that.

        In between the kernel may still take down what was made for the script, such as its init. An exception in this
        thread, Ctrl-C included, cancels the run and waits for its end first. Raises LauncherError when the run could
        not be asked for.
        """
        with named(self.scratch or self.launcher.scratch_root):
            room = make_room()
            ours, theirs = self._pipes()
        sinks = {"out": self.stdout, "err": self.stderr, "events": self.events}
        pump = Pump(
            room=room,
            feeding=ours["in"],
            stdin=self.stdin,
            source=self.source,
            words=ours.get("words"),
            streams={ours[name]: sink for name, sink in sinks.items() if sink is not None},
            on_start=self.on_start,
        )
        try:
            sent = self.launcher.request(
                self.plan,
                [*theirs, *([] if self.told is None else [self.told()])],
                announce=self.on_start is not None,
                scratch=self.scratch,
                upcoming=self.upcoming,
            )
        except BaseException:
            pump.close()
            raise
        try:
            ended = self._follow(pump, sent)
            duration = time.monotonic() - self._started
            try:
                yield Outcome(ended, self.stdout.captured(), self.stderr.captured(), duration)
            finally:
                if _is_over(ended):
                    self._prove(pump, sent)
        finally:
            with (
                self._closing
            ):  # a cancel that comes now must not be written to whatever gets the number next
                self._control = None
                sent.control.close()
            pump.close()

    def _pipes(self) -> tuple[dict[str, int], list[int]]:
        """Make the pipes of a run, or none: our ends by name, and the others in the order in which a leader expects them."""
        names = ["in", "out", "err"]
        if self.plan.wire["mode"] == "init":
            names.insert(0, "words")
        if self.events is not None:
            names.append("events")
        ours: dict[str, int] = {}
        theirs: list[int] = []
        try:
            for name in names:
                reading, writing = os.pipe()  # close-on-exec, as all that Python opens
                ours[name] = writing if name == "in" else reading
                theirs.append(reading if name == "in" else writing)
        except BaseException:
            for descriptor in (*ours.values(), *theirs):
                os.close(descriptor)
            raise
        return ours, theirs

    def _prove(self, pump: Pump, sent: Sent) -> None:
        """Wait until the init of a run that is over is dead, or ended by ourselves; a Ctrl-C is raised after it."""
        last = time.monotonic() + _MARGIN
        interrupt: BaseException | None = None
        while time.monotonic() < last:
            try:
                pump.mute()  # what was printed has been given away
                if not pump.dead(last):
                    self._await(pump, sent, last)
            except BaseException as problem:  # noqa: BLE001, PERF203 - the first one is raised, once there is the proof
                interrupt = interrupt or problem
            else:
                break
        if interrupt is not None:
            raise interrupt

    def _follow(self, pump: Pump, sent: Sent) -> Mapping[str, Any] | None:
        """Pump until the end, and until the dead were read out."""
        try:
            pump.attach(sent.control)
            self._control = sent.control
            if self._cancelled:
                self.cancel()
            if self.meanwhile is not None:
                self.meanwhile()
            ended = self._await(pump, sent, self._last_moment())
            # A reader that is slow gets all that a script printed that ended by itself, however long it takes.
            pump.drain(patient=ended is not None and ended["event"] != "failed" and ended["reason"] is None)
        except BaseException as problem:
            self._abandon(pump, sent, problem)
            raise
        return ended

    def _await(self, pump: Pump, sent: Sent, last_moment: float) -> Mapping[str, Any] | None:
        """Return the launcher's last word; without one, None once nothing of the run is left."""
        ended = pump.work(last_moment)
        if ended is not None:
            return ended
        if not self.launcher.lost(sent.by, stuck=pump.stuck):
            return _NO_ROOM
        if pump.leader is not None:
            (end_world if self.plan.wire["mode"] == "init" else end_group)(pump.leader)
        return None

    def _abandon(self, pump: Pump, sent: Sent, problem: BaseException) -> None:
        """End a run that nobody waits for any more; a second Ctrl-C ends it at once.

        A sink that raised would do so again, and is given nothing more.
        """
        pump.attach(sent.control)  # an interrupt may have come before that
        self._control = sent.control
        self.cancel()
        last = time.monotonic() + GRACE + _MARGIN
        while time.monotonic() < last:
            if isinstance(problem, Exception):
                pump.mute()
            try:
                while _is_over(self._await(pump, sent, last)):
                    pass
                pump.drain(patient=False)
            except BaseException as another:  # noqa: BLE001 - the first one is raised, once the run is over
                problem = another
                pump.mute()
                with contextlib.suppress(OSError):
                    sent.control.shutdown(
                        socket.SHUT_WR
                    )  # for the launcher: nobody waits; yet its word is heard
            else:
                return

    def cancel(self) -> None:
        """Ask for the run to be ended; its tree gets the grace, then SIGKILL."""
        self._cancelled = True
        with self._closing, contextlib.suppress(OSError):
            if self._control is not None:
                self._control.send(b"cancel", socket.MSG_DONTWAIT)

    def _last_moment(self) -> float:
        """Return when a launcher that has not spoken is given up; it keeps the deadline itself."""
        return time.monotonic() + float(self.plan.wire["timeout"]) + GRACE + _MARGIN


def _is_over(ended: Mapping[str, Any] | None) -> bool:
    """Whether this is the last word but one."""
    return ended is not None and ended["event"] == OVER
