"""Drive one run from its request to the proof of its end: feed, drain, wait, cancel."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillrun.sandbox.wire import GRACE

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from skillrun.launch.capture import Captured, Sink
    from skillrun.launch.launcher import Launcher
    from skillrun.sandbox.backend import LaunchPlan

_MARGIN = 10.0  # seconds beyond deadline and grace after which the launcher itself is given up


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

    launcher: Launcher
    plan: LaunchPlan
    stdin: bytes
    stdout: Sink
    stderr: Sink
    on_start: Callable[[int], None] | None = None
    _control: socket.socket | None = None
    _cancelled: bool = False
    _started: float = field(default_factory=time.monotonic)

    def run(self) -> Outcome:
        """Start the script and return when nothing of it is left.

        An exception in this thread, Ctrl-C included, cancels the run and waits for its end first.
        """
        reading, feeding = os.pipe2(os.O_CLOEXEC)
        out, out_end = os.pipe2(os.O_CLOEXEC)
        err, err_end = os.pipe2(os.O_CLOEXEC)
        streams = {out: self.stdout, err: self.stderr}
        try:
            control = self.launcher.request(
                self.plan, [reading, out_end, err_end], announce=self.on_start is not None
            )
        except BaseException:
            for descriptor in (feeding, out, err):
                os.close(descriptor)
            raise
        self._control = control
        try:
            if self._cancelled:
                self.cancel()
            pump = _Pump(control, feeding=feeding, stdin=self.stdin, streams=streams, on_start=self.on_start)
            try:
                ended = pump.work(self._last_moment())
            except BaseException:
                self.cancel()
                pump.work(time.monotonic() + GRACE + _MARGIN)
                raise
            if ended is None and pump.stuck:
                self.launcher.replace()
        finally:
            self._control = None
            control.close()
        duration = time.monotonic() - self._started
        return Outcome(ended, self.stdout.captured(), self.stderr.captured(), duration)

    def cancel(self) -> None:
        """Ask for the run to be ended; its tree gets the grace, then SIGKILL."""
        self._cancelled = True
        control = self._control
        if control is not None:
            with contextlib.suppress(OSError):
                control.send(b"cancel")

    def _last_moment(self) -> float:
        """Return when a launcher that has not spoken is given up; it keeps the deadline itself."""
        return time.monotonic() + float(self.plan.wire["timeout"]) + GRACE + _MARGIN


class _Pump:
    """Moves bytes between the script's pipes and the owner until the launcher has said the last word."""

    def __init__(
        self,
        control: socket.socket,
        *,
        feeding: int,
        stdin: bytes,
        streams: dict[int, Sink],
        on_start: Callable[[int], None] | None,
    ) -> None:
        self._control = control
        self._feeding: int | None = feeding
        self._stdin = memoryview(stdin)
        self._streams = streams
        self._on_start = on_start
        self._blocked: dict[int, int] = {}  # an output that is full → the stream that waits for it
        self._ended: Mapping[str, Any] | None = None
        self._over = False
        self.stuck = False
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        for descriptor in streams:
            os.set_blocking(descriptor, False)
            self._poll.register(descriptor, select.POLLIN)
        if stdin:
            os.set_blocking(feeding, False)
            self._poll.register(feeding, select.POLLOUT)
        else:
            self._stop_feeding()

    def work(self, last_moment: float) -> Mapping[str, Any] | None:
        """Work until the end; return the launcher's last word, None if it has none or time is up."""
        try:
            while not self._over:
                left = last_moment - time.monotonic()
                if left <= 0:
                    self.stuck = True
                    break
                for descriptor, _ in self._poll.poll(min(left, 60.0) * 1000):
                    self._serve(descriptor)
            self._drain()
        finally:
            if self._over or self.stuck:
                self._close()
        return self._ended

    def _serve(self, descriptor: int) -> None:
        """Deal with one descriptor that is ready."""
        if descriptor == self._control.fileno():
            self._listen()
        elif descriptor == self._feeding:
            self._feed()
        elif descriptor in self._blocked:
            stream = self._blocked.pop(descriptor)
            self._poll.unregister(descriptor)
            self._pass(stream)
            if stream in self._streams:
                self._poll.register(stream, select.POLLIN)
        elif descriptor in self._streams:
            self._read(descriptor)

    def _listen(self) -> None:
        """Take one message of the launcher."""
        try:
            words = self._control.recv(65536)
        except OSError:
            words = b""
        if not words:
            self._over = True
            return
        message = json.loads(words)
        if message["event"] == "started":
            if self._on_start is not None:
                self._on_start(message["pid"])
        else:
            self._ended = message
            self._over = True

    def _feed(self) -> None:
        """Write some of stdin; a script that does not read it loses nothing."""
        assert self._feeding is not None  # noqa: S101 - only registered while it is open
        try:
            self._stdin = self._stdin[os.write(self._feeding, self._stdin[: 1 << 16]) :]
        except BlockingIOError:
            return
        except OSError:
            self._stdin = self._stdin[:0]
        if not self._stdin:
            self._poll.unregister(self._feeding)
            self._stop_feeding()

    def _stop_feeding(self) -> None:
        """Close the script's stdin."""
        if self._feeding is not None:
            os.close(self._feeding)
            self._feeding = None

    def _read(self, stream: int) -> None:
        """Read from a stream if its sink has room, else wait for the sink instead."""
        gate = self._streams[stream].ready()
        if gate is None:
            self._pass(stream)
            return
        self._poll.unregister(stream)
        if gate in self._blocked:  # both streams go to one descriptor, such as a terminal: take turns
            self._pass(stream)
            if stream in self._streams:
                self._poll.register(stream, select.POLLIN)
            return
        self._blocked[gate] = stream
        self._poll.register(gate, select.POLLOUT)

    def _pass(self, stream: int) -> bool:
        """Move what fits from a stream to its sink; return whether anything was there."""
        sink = self._streams[stream]
        try:
            chunk = os.read(stream, sink.room())
        except BlockingIOError:
            return False
        try:
            sink.feed(chunk)
        except OSError:
            chunk = b""  # the reader of our output is gone: the script learns it by SIGPIPE, as in any pipe
        if not chunk:
            self._end_stream(stream)
        return bool(chunk)

    def _end_stream(self, stream: int) -> None:
        """Close a stream."""
        with contextlib.suppress(KeyError):
            self._poll.unregister(stream)
        del self._streams[stream]
        os.close(stream)

    def _drain(self) -> None:
        """Read what the dead left in the pipes: it has an end, as nobody is left to add to it."""
        for stream in list(self._streams):
            more = not self.stuck
            while more and stream in self._streams:
                gate = self._streams[stream].ready()
                if gate is not None:
                    waiter = select.poll()
                    waiter.register(gate, select.POLLOUT)
                    waiter.poll()
                more = self._pass(stream)

    def _close(self) -> None:
        """Close whatever is still open."""
        self._stop_feeding()
        for stream in list(self._streams):
            self._end_stream(stream)
