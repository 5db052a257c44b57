"""Audit: what Landlock told the kernel's audit log about one run, where this process may read it.

From Landlock ABI 7 (Linux 6.15) on a domain can be told to log what it denies after an exec, too. It does so
only while auditing is on, which is the administrator's choice: skillrun reads the log and never turns it on.
Records may be lost under load, so what is not there proves nothing.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.launch.denials import KERNEL, NETWORK, Suspect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LEAST_ABI: Final = 7
# <linux/audit.h>, <linux/netlink.h>
_NETLINK_AUDIT, _GROUP_READLOG = 9, 1
_AUDIT_GET, _ACCESS, _DOMAIN = 1000, 1423, 1424
_REQUEST, _ACK, _ERROR = 1, 4, 2
_HEADER: Final = struct.Struct("=IHHII")
_STATUS: Final = struct.Struct("=II")  # struct audit_status begins with mask, enabled
_ROOM: Final = 1 << 22  # bytes of records that wait for us
_MOST: Final = 10_000  # records looked at: a script can be denied without end
_READS: Final = {"fs.execute", "fs.read_file", "fs.read_dir"}


@dataclass(slots=True)
class Audit:
    """An open view of the log; `close` it."""

    _socket: socket.socket

    @classmethod
    def opened(cls, abi: int) -> Audit | str:
        """Open the log before a run, or say why it can't be read."""
        if abi < LEAST_ABI:
            return f"this kernel's Landlock has ABI {abi}, and logs from {LEAST_ABI} on"
        made: socket.socket | None = None
        try:
            with _netlink() as asking:  # not the socket that listens: its number is given at the first word
                on = _auditing(asking)
            made = _netlink()
            made.bind((0, _GROUP_READLOG))
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
            made.settimeout(0)
        except OSError as problem:
            if made is not None:
                made.close()
            return f"the audit log can't be read: {problem.strerror}"
        if not on:
            made.close()
            return "auditing is off on this machine, and skillrun does not turn it on"
        return cls(made)

    def denied(self, pid: int) -> tuple[Suspect, ...]:
        """Give what was denied to the domain that a process made, each once."""
        return tuple(dict.fromkeys(suspects(self._records(), pid)))

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def _records(self) -> Iterator[tuple[int, str]]:
        """Read what is there: the type of each record, and its words."""
        for _ in range(_MOST):
            try:
                data = self._socket.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                continue  # some were lost (ENOBUFS); the next read goes on
            if len(data) >= _HEADER.size:
                _, kind, *_ = _HEADER.unpack_from(data)
                yield kind, data[_HEADER.size :].rstrip(b"\0\n").decode("utf-8", "surrogateescape")


def suspects(records: Iterable[tuple[int, str]], pid: int) -> Iterator[Suspect]:
    """Give what records say was denied to the domains that a process made.

    A domain is named with its maker only once, behind the first record about it.
    """
    known = list(records)
    own = {
        fields["domain"]
        for kind, words in known
        if kind == _DOMAIN and (fields := _fields(words)).get("pid") == str(pid) and "domain" in fields
    }
    for kind, words in known:
        fields = _fields(words)
        if kind != _ACCESS or fields.get("domain") not in own:
            continue
        blockers = set(fields.get("blockers", "").split(","))
        if any(name.startswith("net.") for name in blockers):
            yield Suspect(NETWORK, None, KERNEL)
        elif "path" in fields and any(name.startswith("fs.") for name in blockers):
            operation = "read" if blockers <= _READS else "write"
            yield Suspect(operation, Path(fields["path"]), KERNEL)


_FIELD: Final = re.compile(r'(\w+)=(?:"([^"]*)"|(\S+))')


def _fields(words: str) -> dict[str, str]:
    """Part a record; a text that the kernel could not quote is in hexadecimal (audit_log_untrustedstring)."""
    found: dict[str, str] = {}
    for name, quoted, bare in _FIELD.findall(words):
        value = quoted or bare
        if name == "path" and bare:
            with contextlib.suppress(ValueError):
                value = bytes.fromhex(bare).decode("utf-8", "surrogateescape")
        found[name] = value
    return found


def _netlink() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_AUDIT)


def _auditing(made: socket.socket) -> bool:
    """Ask the kernel whether auditing is on. Raises OSError where we may not ask."""
    made.settimeout(1.0)
    made.send(_HEADER.pack(_HEADER.size, _AUDIT_GET, _REQUEST | _ACK, 1, 0))
    for _ in range(4):
        data = made.recv(8192)
        _, kind, *_ = _HEADER.unpack_from(data)
        if kind == _AUDIT_GET:
            return bool(_STATUS.unpack_from(data, _HEADER.size)[1])
        if kind == _ERROR:
            number = -struct.unpack_from("=i", data, _HEADER.size)[0]
            if number:
                raise OSError(number, "this process may not ask about it")
    return False
