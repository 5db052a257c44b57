"""Question: one operation on one target, as a kernel would ask it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_ADDRESS: Final = re.compile(
    r"(?P<protocol>tcp|udp)://(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:]*)):(?P<port>\d{1,5}|\*)"
)
FILES: Final = ("file", "process-exec", "fs-", "qtn-", "mach-priv-task-port")
"""Beginnings of the names of operations that are about a path."""
NO_PATH: Final = "\x00"
"""Stands for the path of what has none: no filter text can hold it."""


@dataclass(frozen=True, slots=True)
class Address:
    """A network address: `loopback` as `localhost` means it, and not ::ffff:127.0.0.1 (codex#42925)."""

    protocol: str
    version: int
    port: str
    loopback: bool


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: `path` of a file or a unix socket, `address` of a socket, or just the `text` as a name.

    `given` are facts that only a kernel knows otherwise: `vnode-type`, `file-mode`, `extension` (what the
    process holds), `socket-protocol`, `namespace` of a service (global, local, xpc), `xattr`, `signal-number`.
    """

    operation: str
    text: str
    path: str = NO_PATH
    address: Address | None = None
    given: Mapping[str, Any] = field(default_factory=dict)


def question(operation: str, target: str, given: Mapping[str, Any] | None = None) -> Question:
    """Read a target: a path, `unix:/path`, `tcp://host:port`, `udp://[v6]:port`, or a name.

    Paths are compared as they stand: a kernel asks about the physical one. Raises ValueError for an address
    that is none.
    """
    facts = given or {}
    if operation.startswith("network"):
        if target.startswith("unix:"):
            return Question(operation, target, path=target[5:], given=facts)
        return Question(operation, target, address=_address(target), given=facts)
    if operation.startswith(FILES):
        return Question(operation, target, path=target, given=facts)
    return Question(operation, target, given=facts)


def _address(target: str) -> Address | None:
    if not target:
        return None
    found = _ADDRESS.fullmatch(target)
    if found is None:
        raise ValueError(
            f"`{target}` is no address; write `tcp://host:port`, `udp://host:port` or `unix:/path`"
        )
    host = found["six"] or found["host"]
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        # A name: only `localhost` says where it leads.
        return Address(found["protocol"], 4, found["port"], loopback=host == "localhost")
    loopback = number.is_loopback and getattr(number, "ipv4_mapped", None) is None
    return Address(found["protocol"], number.version, found["port"], loopback=loopback)
