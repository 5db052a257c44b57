"""Pump: move bytes between a script's pipes and the owner, and take the launcher's words, in one thread."""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

from skillrun.launch.capture import Keep
from skillrun.launch.words import understood

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillrun.launch.capture import Sink

OVER = "over"  # the last word but one
_ROOM = 1 << 16  # bytes: what a pipe holds by default, and more than a launcher says at once
_PATIENCE = 1.0  # seconds that a reader of our output gets once a run was ended, for what lies in the pipes


def _heard(control: socket.socket, room: memoryview) -> tuple[bytes, list[int]] | None:
    """Take one message by way of a buffer, empty at the end, and the descriptors that come with it; None if there is none.

    A launcher that goes with a word of ours unread, such as a cancel that came too late, makes the kernel say
    ECONNRESET, once and before what was sent (unix(7), unix_release_sock): its own last word is still there.
    """
    try:
        with contextlib.suppress(ConnectionResetError):
            return _message(control, room)
        return _message(control, room)
    except BlockingIOError:
        return None
    except OSError:
        return b"", []


def _message(control: socket.socket, room: memoryview) -> tuple[bytes, list[int]]:
    """Receive one message, with at most one descriptor."""
    count, ancillary, _, _ = control.recvmsg_into(
        [room], socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
    )
    return bytes(room[:count]), [int.from_bytes(words[:4], sys.byteorder) for *_, words in ancillary]


def make_room() -> memoryview:
    """Make the one buffer of a run that everything is read into. Raises OSError.

    `os.read` asks for the whole room each time and gives back what it did not fill: of many runs in many threads, the
    heap keeps the holes, as it does of a buffer that comes from there. Private: what is read is no forked copy's.
    """
    return memoryview(mmap.mmap(-1, _ROOM, flags=mmap.MAP_PRIVATE))


class Pump:
    """Moves bytes between the script's pipes and the owner until the launcher has said the last word."""

    def __init__(
        self,
        *,
        room: memoryview,
        feeding: int,
        stdin: bytes,
        source: int | None,
        words: int | None,
        streams: dict[int, Sink],
        on_start: Callable[[int], None] | None,
    ) -> None:
        self._control: socket.socket | None = None
        self._feeding: int | None = feeding
        self._stdin = memoryview(stdin)
        self._source = source
        self._streams = streams
        self._on_start = on_start
        self._blocked: dict[int, list[int]] = {}  # an output that is full → the streams that wait for it
        self._ended: Mapping[str, Any] | None = None
        self._over = False  # there is nothing more to wait for, or not for now
        self._room = room
        self.stuck = False
        self.leader: int | None = None  # the last that was told, as one before it was dead
        self._death: int | None = None  # its pidfd
        self._poll = select.poll()
        self._announced = on_start is None
        self._said: Mapping[str, Any] | None = None  # by an init
        self._words = words
        if words is not None:
            os.set_blocking(words, False)
            self._poll.register(words, 0)  # for its end alone
        for descriptor in streams:
            os.set_blocking(descriptor, False)
            self._poll.register(descriptor, select.POLLIN)
        os.set_blocking(feeding, False)
        if stdin:
            self._poll.register(feeding, select.POLLOUT)
        else:
            self._wait_for_more()

    def attach(self, control: socket.socket) -> None:
        """Listen to a launcher from here on."""
        self._control = control
        self._poll.register(control, select.POLLIN)

    def work(self, last_moment: float) -> Mapping[str, Any] | None:
        """Work until the end; return the launcher's last word, None if it has none or time is up.

        The last word but one, `over`, is returned too: then there is one more to wait for.
        """
        if self._ended is not None and self._ended["event"] == OVER:
            self._ended, self._over = None, False
        while not self._over:
            left = last_moment - time.monotonic()
            if left <= 0:
                self.stuck = True
                break
            for descriptor, _ in self._poll.poll(min(left, 60.0) * 1000):
                self._serve(descriptor)
        return self._ended

    def _serve(self, descriptor: int) -> None:
        """Deal with one descriptor that is ready."""
        if self._control is not None and descriptor == self._control.fileno():
            self._listen(self._control)
        elif descriptor == self._words:
            self._listen_to_init()
        elif descriptor == self._feeding:
            self._feed()
        elif descriptor == self._source:
            self._fetch()
        elif descriptor in self._blocked:
            self._take_turn(descriptor)
        elif descriptor in self._streams:
            self._read(descriptor)

    def _listen(self, control: socket.socket) -> None:
        """Take one message of the launcher."""
        heard = _heard(control, self._room)
        if heard is None:  # it was taken in this round already
            return
        words, descriptors = heard
        message = understood(words) if words else None
        if descriptors or (message is not None and message["event"] == "leader"):
            self._forget_leader()  # of the one before: it was dead
            self._death = descriptors[0] if descriptors else None
        if not words:
            self._over = True
            return
        if message is None:  # it is broken, and is given up as one that hangs
            self.stuck = True
            self._over = True
        elif message["event"] == "leader":
            self.leader = message["pid"]
        elif message["event"] == "started":
            self._announced = True
            if self._on_start is not None:
                self._on_start(message["pid"])
            self._go_on()
        else:
            self._ended = message
            self._over = True

    def _listen_to_init(self) -> None:
        """Take what an init said before it went; one that was killed or asked to end says nothing."""
        assert self._words is not None  # noqa: S101 - only registered while it is open
        try:
            words = os.read(self._words, _ROOM)
        except OSError:
            words = b""
        self._forget_words()
        message = understood(words) if words else None
        if message is not None and message["event"] == OVER:
            self._said = message
            self._catch_up()
            self._go_on()

    def _catch_up(self) -> None:
        """Hear what the launcher had said before an init spoke: above all which process that init is."""
        if self._control is None:
            return
        waiter = select.poll()
        waiter.register(self._control, select.POLLIN)
        while not self._over and waiter.poll(0):
            self._listen(self._control)

    def _go_on(self) -> None:
        """Take the word of an init for the last but one, once the start was announced to who wants to know.

        Also when the launcher has died meanwhile: the script had ended by itself.
        """
        if self._said is not None and self._announced and self._ended is None and not self.stuck:
            self._ended, self._said = self._said, None
            self._over = True

    def _forget_words(self) -> None:
        """Close what an init speaks through."""
        if self._words is not None:
            self._poll.unregister(self._words)
            os.close(self._words)
            self._words = None

    def _feed(self) -> None:
        """Write some of stdin; a script that does not read it loses nothing."""
        assert self._feeding is not None  # noqa: S101 - only registered while it is open
        try:
            self._stdin = self._stdin[os.write(self._feeding, self._stdin[: 1 << 16]) :]
        except BlockingIOError:
            return
        except OSError:
            self._stdin, self._source = self._stdin[:0], None
        if not self._stdin:
            self._poll.unregister(self._feeding)
            self._wait_for_more()

    def _wait_for_more(self) -> None:
        """Wait for what comes from the source next; without one stdin is at its end."""
        if self._source is None:
            self._stop_feeding()
        else:
            self._poll.register(self._source, select.POLLIN)

    def _fetch(self) -> None:
        """Read what the source has and pass it on before more is read."""
        assert self._source is not None  # noqa: S101 - only registered while it is there
        self._poll.unregister(self._source)
        chunk = os.read(self._source, 1 << 16)
        if not chunk:
            self._source = None
            self._stop_feeding()
        elif self._feeding is not None:
            self._stdin = memoryview(chunk)
            self._poll.register(self._feeding, select.POLLOUT)

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
        # Both streams may go to one descriptor, such as a terminal. Only its first sign of room is room for
        # one of them: the other waits for the next.
        self._poll.unregister(stream)
        waiting = self._blocked.setdefault(gate, [])
        waiting.append(stream)
        if len(waiting) == 1:
            self._poll.register(gate, select.POLLOUT)

    def _take_turn(self, gate: int) -> None:
        """Pass on one stream to a descriptor that has room."""
        waiting = self._blocked[gate]
        stream = waiting.pop(0)
        if not waiting:
            del self._blocked[gate]
            self._poll.unregister(gate)
        self._pass(stream)
        if stream in self._streams:
            self._poll.register(stream, select.POLLIN)

    def _pass(self, stream: int) -> bool:
        """Move what fits from a stream to its sink; return whether anything was there."""
        sink = self._streams[stream]
        try:
            count = os.readv(stream, [self._room[: sink.room()]])
        except BlockingIOError:
            return False
        chunk = bytes(self._room[:count])
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

    def drain(self, *, patient: bool) -> None:
        """Read what the dead left in the pipes.

        It has an end, as nobody is left to add to it, unless launcher and warden were killed together:
        that too is a reason to stop after a while when there is no patience.
        """
        last = None if patient else time.monotonic() + _PATIENCE
        for stream in list(self._streams):
            while stream in self._streams and self._has_room(stream, last) and self._pass(stream):
                pass

    def _has_room(self, stream: int, last: float | None) -> bool:
        """Wait until the sink of a stream has room, `last` being the latest time; return whether it has."""
        left = None if last is None else last - time.monotonic()
        if left is not None and left <= 0:
            return False
        gate = self._streams[stream].ready()
        if gate is None:
            return True
        waiter = select.poll()
        waiter.register(gate, select.POLLOUT)
        return bool(waiter.poll(None if left is None else left * 1000))

    def dead(self, last_moment: float) -> bool:
        """Wait for the death of the leader by its pidfd; return whether that came. Without a pidfd it can't be told."""
        if self._death is None:
            return False
        waiter = select.poll()
        waiter.register(self._death, select.POLLIN)
        return bool(waiter.poll(max(0.0, last_moment - time.monotonic()) * 1000))

    def _forget_leader(self) -> None:
        """Close the pidfd of a leader."""
        if self._death is not None:
            os.close(self._death)
            self._death = None

    def mute(self) -> None:
        """Give the sinks nothing more: what still comes is dropped."""
        for gate in self._blocked:
            self._poll.unregister(gate)
        self._blocked.clear()
        for stream in self._streams:
            self._streams[stream] = Keep(0)
            self._poll.register(stream, select.POLLIN)

    def close(self) -> None:
        """Close whatever is still open."""
        self._stop_feeding()
        self._forget_words()
        self._forget_leader()
        for stream in list(self._streams):
            self._end_stream(stream)
