"""Notify: what the system calls of one run ask for, told by the kernel before it does them (seccomp_unotify(2)).

The script's own filter tells; this process only writes down and lets every call go on, so nothing is decided here and
a script that changes the path meanwhile fools nobody but the log. It needs no privilege and no audit log.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import threading
from typing import TYPE_CHECKING, Final

from skillrun.launch.asked import Asked
from skillrun.sandbox.linux.telling import WAYS, program, told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillrun.sandbox.linux.telling import Told, Way

# <linux/seccomp.h>: struct seccomp_notif, struct seccomp_notif_resp, and their ioctls.
_NOTIF: Final = struct.Struct("=QIIiIQ6Q")
_ANSWER: Final = struct.Struct("=QqiI")
_RECEIVE, _SEND, _VALID = 0xC0502100, 0xC0182101, 0x40082102
_CONTINUE: Final = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE, Linux 5.5
_SET_FLAGS, _SYNC = 0x40082104, 1  # SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, Linux 6.6: twice as fast
_LONGEST_PATH: Final = 4096
_PAGE: Final = 4096
_AT_CWD: Final = -100
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_TRUNC
_INET: Final = frozenset({socket.AF_INET, socket.AF_INET6})
# What is kept of one run, which can ask without end: so many different things, with so many characters in all.
_MOST: Final = 20_000
_ROOM: Final = 2 << 20
_AGAIN: Final = 50  # milliseconds until descriptors are looked for again where there were none


class Notify:
    """Listens to one run. `close` it when nothing of the run is left; `suspects` says what was asked for."""

    def __init__(self, machine: str) -> None:
        self.program = program(machine)
        self.problem: str | None = None
        self._told: Mapping[int, Told] = told(machine)
        self._asked: dict[Asked, None] = {}
        self._room = _ROOM
        with contextlib.ExitStack() as made:
            # Written to and not closed: a forked copy of this process would hold the other end of a pipe open.
            self._stop = os.eventfd(0, os.EFD_CLOEXEC)
            made.callback(os.close, self._stop)
            self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            made.callback(theirs.close)
            made.callback(self._ours.close)
            self._thread = threading.Thread(target=self._listen, name="skillrun-notify", daemon=True)
            self._thread.start()
            made.pop_all()
        self._theirs: int | None = theirs.detach()

    def take(self) -> int:
        """Give the descriptor over which the run sends its listener, once; it is the taker's to close."""
        theirs, self._theirs = self._theirs, None
        assert theirs is not None  # noqa: S101 - a run is driven once
        return theirs

    def close(self) -> None:
        """End the listening."""
        if self._theirs is not None:
            os.close(self.take())
        os.eventfd_write(self._stop, 1)
        self._thread.join()
        os.close(self._stop)
        self._ours.close()

    def asked(self) -> tuple[Asked, ...]:
        """Give what the run asked for, each once, in the order of asking; whether it was denied is for the policy to say."""
        return tuple(self._asked)

    def _listen(self) -> None:
        """Wait for the listener, then for what it tells, until told to stop."""
        try:
            found = self._arrived()
            if found is None:
                return
            with contextlib.closing(os.fdopen(found, "rb", buffering=0)) as listener:
                with contextlib.suppress(OSError):
                    fcntl.ioctl(found, _SET_FLAGS, _SYNC)
                while self._readable(listener.fileno()):
                    self._one(listener.fileno())
        except OSError as wrong:
            self.problem = f"the listener failed: {wrong.strerror}"

    def _arrived(self) -> int | None:
        """Wait for the listener; None when there is none, or it is over.

        It is only looked at until there is a descriptor for it: taken without one it would be closed, and every
        call that is told of would fail.
        """
        while self._readable(self._ours.fileno()):
            # Not by socket.recv_fds: that of Python 3.11, for one, drops its flags, and a listener must reach no child.
            flags = socket.MSG_PEEK | socket.MSG_CMSG_CLOEXEC
            words, sent, state, _ = self._ours.recvmsg(64, socket.CMSG_LEN(4), flags)
            if sent:
                self._ours.recv(64)
                return int(struct.unpack("=i", sent[0][2])[0])
            if not state & socket.MSG_CTRUNC:
                self.problem = words.decode("ascii", "replace") or None
                return None
            self._stopped(_AGAIN)
        return None

    def _stopped(self, milliseconds: int) -> bool:
        """Wait to be told to stop, for so long."""
        waiting = select.poll()
        waiting.register(self._stop, select.POLLIN)
        return bool(waiting.poll(milliseconds))

    def _readable(self, descriptor: int) -> bool:
        """Wait until there is something to read; False when it is over."""
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        waiting.register(self._stop, select.POLLIN)
        ready = dict(waiting.poll())
        return self._stop not in ready and bool(ready.get(descriptor, 0) & select.POLLIN)

    def _one(self, listener: int) -> None:
        """Take one call, write it down, and let it go on."""
        buffer = bytearray(_NOTIF.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, buffer)
        except OSError as wrong:
            if wrong.errno in {errno.ENOENT, errno.EINTR}:  # whoever made the call was killed meanwhile
                return
            raise
        number, pid, _, call, _, _, *arguments = _NOTIF.unpack(buffer)
        if call in self._told and self._room > 0 and len(self._asked) < _MOST:
            found = list(_reads(pid, self._told[call], arguments))
            # The process id may be somebody else's by now; what was read counts only while the call still waits.
            with contextlib.suppress(OSError):
                fcntl.ioctl(listener, _VALID, struct.pack("=Q", number))
                self._keep(found)
        with contextlib.suppress(OSError):
            _tell(listener, _ANSWER.pack(number, 0, 0, _CONTINUE))

    def _keep(self, found: list[Asked]) -> None:
        for one in found:
            if one not in self._asked:
                self._asked[one] = None
                self._room -= len(one.path or "")


def _tell(listener: int, answer: bytes) -> None:
    """Let a call go on; a signal that comes to this thread meanwhile must not leave it waiting."""
    while True:
        with contextlib.suppress(InterruptedError):
            fcntl.ioctl(listener, _SEND, answer)
            return


def _reads(pid: int, call: Told, arguments: list[int]) -> Iterator[Asked]:
    """Give what a call asks for; nothing where its memory can't be read."""
    if call.address is not None:
        if _family(pid, arguments[call.address], arguments[call.address + 1]) in _INET:
            yield Asked()
        return
    for folder, path, named in call.paths:
        way = _opening(arguments[call.flags]) if named is None else named
        text = _text(pid, arguments[path]) if way is not None else None
        if text:
            base = _AT_CWD if folder is None else ctypes.c_int(arguments[folder]).value
            whole = _absolute(pid, base, text)
            if whole is not None:
                yield Asked(whole, way)


def _opening(flags: int) -> Way | None:
    """Say what open(2) does with a path, None where it gives nothing to read and nothing to write."""
    if flags & os.O_PATH:
        return None
    if flags & os.O_CREAT:
        return WAYS["make" if flags & os.O_EXCL else "write"]
    return WAYS["change" if flags & _WRITING else "read"]


def _absolute(pid: int, folder: int, text: str) -> str | None:
    if text.startswith("/"):
        return text
    link = f"/proc/{pid}/cwd" if folder == _AT_CWD else f"/proc/{pid}/fd/{folder}"
    try:
        base = os.readlink(link)  # noqa: PTH115 - a descriptor's link may lead to what is no path
    except OSError:
        return None
    return f"{base}/{text}" if base.startswith("/") else None


def _family(pid: int, address: int, size: int) -> int | None:
    data = _memory(pid, address, 2) if size >= 2 else b""  # noqa: PLR2004 - sa_family_t
    return int(struct.unpack("=H", data)[0]) if len(data) == 2 else None  # noqa: PLR2004 - as above


def _text(pid: int, address: int) -> str | None:
    """Return a text of a process, page by page: it may end before memory that is not there."""
    found = b""
    while len(found) < _LONGEST_PATH:
        part = _memory(pid, address + len(found), _PAGE - (address + len(found)) % _PAGE)
        found += part
        if not part:
            return None
        if b"\0" in part:
            return found.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
    return None


def _memory(pid: int, address: int, size: int) -> bytes:
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:  # noqa: PTH123 - not a path of anybody's
            return os.pread(file.fileno(), size, address)
    except (OSError, OverflowError):
        return b""
