"""Notify: what the system calls of one run ask for, told by the kernel before it does them (seccomp_unotify(2)).

The script's own filter tells; this process only writes down and lets every call go on, so nothing is decided here and
a script that changes the path meanwhile fools nobody but the log. It needs no privilege and no audit log.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import socket
import struct
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.launch.denials import KERNEL, NETWORK, Suspect
from skillrun.sandbox.linux.telling import program, told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillrun.sandbox.linux.telling import Told

# <linux/seccomp.h>: struct seccomp_notif, struct seccomp_notif_resp, and their ioctls.
_NOTIF: Final = struct.Struct("=QIIiIQ6Q")
_ANSWER: Final = struct.Struct("=QqiI")
_RECEIVE, _SEND, _VALID = 0xC0502100, 0xC0182101, 0x40082102
_CONTINUE: Final = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE, Linux 5.5
_LONGEST_PATH: Final = 4096
_PAGE: Final = 4096
_AT_CWD: Final = -100
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_INET: Final = frozenset({socket.AF_INET, socket.AF_INET6})
_MOST: Final = 20_000  # different things that are kept of one run; a script can ask without end


@dataclass(frozen=True, slots=True)
class Asked:
    """What a system call asked for, an absolute path or None for the network."""

    operation: str
    path: str | None = None


class Notify:
    """Listens to one run. `close` it when nothing of the run is left; `suspects` says what was asked for."""

    def __init__(self, machine: str) -> None:
        self.program = program(machine)
        self.problem: str | None = None
        self._told: Mapping[int, Told] = told(machine)
        self._asked: dict[Asked, None] = {}
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._theirs: int | None = theirs.detach()
        self._stop, self._stopping = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._listen, name="skillrun-notify", daemon=True)
        self._thread.start()

    def take(self) -> int:
        """Give the descriptor over which the run sends its listener, once; it is the taker's to close."""
        theirs, self._theirs = self._theirs, None
        assert theirs is not None  # noqa: S101 - a run is driven once
        return theirs

    def close(self) -> None:
        """End the listening."""
        if self._theirs is not None:
            os.close(self.take())
        os.close(self._stopping)
        self._thread.join()
        os.close(self._stop)
        self._ours.close()

    def suspects(self) -> Iterator[Suspect]:
        """Give what the run asked for, each once, in the order of asking; whether it was denied is for the policy to say."""
        for one in list(self._asked):
            if one.operation == NETWORK:
                yield Suspect(NETWORK, None, KERNEL)
            elif one.path is not None:
                yield Suspect(one.operation, Path(one.path), KERNEL)

    def _listen(self) -> None:
        """Wait for the listener, then for what it tells, until told to stop."""
        try:
            if not self._readable(self._ours.fileno()):
                return
            words, found, _, _ = socket.recv_fds(self._ours, 64, 1, socket.MSG_CMSG_CLOEXEC)
            if not found:
                self.problem = words.decode("ascii", "replace") or None
                return
            with contextlib.closing(os.fdopen(found[0], "rb", buffering=0)) as listener:
                while self._readable(listener.fileno()):
                    self._one(listener.fileno())
        except OSError as wrong:
            self.problem = f"the listener failed: {wrong.strerror}"

    def _readable(self, descriptor: int) -> bool:
        """Wait until there is something to read; False when it is over."""
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        waiting.register(self._stop, select.POLLIN)
        ready = dict(waiting.poll())
        return bool(ready.get(descriptor, 0) & select.POLLIN)

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
        if call in self._told and len(self._asked) < _MOST:
            found = list(_reads(pid, self._told[call], arguments))
            # The process id may be somebody else's by now; what was read counts only while the call still waits.
            with contextlib.suppress(OSError):
                fcntl.ioctl(listener, _VALID, struct.pack("=Q", number))
                self._asked.update(dict.fromkeys(found))
        with contextlib.suppress(OSError):
            fcntl.ioctl(listener, _SEND, _ANSWER.pack(number, 0, 0, _CONTINUE))


def _reads(pid: int, call: Told, arguments: list[int]) -> Iterator[Asked]:
    """Give what a call asks for; nothing where its memory can't be read."""
    if call.address is not None:
        if _family(pid, arguments[call.address], arguments[call.address + 1]) in _INET:
            yield Asked(NETWORK)
        return
    writes = bool(arguments[call.flags] & _WRITING) if call.writes is None else call.writes
    for folder, path in call.paths:
        text = _text(pid, arguments[path])
        if text:
            base = (
                _AT_CWD
                if folder is None
                else struct.unpack("=i", struct.pack("=I", arguments[folder] & 0xFFFFFFFF))[0]
            )
            whole = _absolute(pid, base, text)
            if whole is not None:
                yield Asked("write" if writes else "read", whole)


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
