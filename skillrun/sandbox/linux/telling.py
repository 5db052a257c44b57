"""Telling: the system calls that a traced run tells of before the kernel does them, from `profiles/linux/trace.yaml`."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun import resources
from skillrun.sandbox.linux.seccomp import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Mapping

# <linux/seccomp.h>: SECCOMP_RET_ALLOW, SECCOMP_RET_USER_NOTIF. An errno of the other filter goes before it.
_ALLOW: Final = 0x7FFF0000
_TELL: Final = 0x7FC00000
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _ARCHITECTURE = 0, 4


@dataclass(frozen=True, slots=True)
class Way:
    """What is done at a path: whether it writes, whether the path must be there (None: no matter), and links at its end.

    A call that finds a path there that must not be, or none that must, fails before any sandbox is asked.
    """

    writes: bool
    there: bool | None = True
    follows: bool = True


WAYS: Final = {
    "read": Way(writes=False),
    "change": Way(writes=True),
    "write": Way(writes=True, there=None),
    "make": Way(writes=True, there=False, follows=False),
    "remove": Way(writes=True, follows=False),
    "put": Way(writes=True, there=None, follows=False),
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a system call says: which of its arguments are paths (a folder's descriptor or None, the path), or an address.

    A path has its way; None: the open(2) flags in argument `flags` say it.
    """

    paths: tuple[tuple[int | None, int, Way | None], ...] = ()
    flags: int = 0
    address: int | None = None


def told(machine: str) -> Mapping[int, Told]:
    """Return what is told on a machine, by the number of the call. Raises KeyError for an unknown machine."""
    _, column = ARCHITECTURES[machine]
    numbers = resources.table("linux/syscalls")
    found: dict[int, Told] = {}
    for row in resources.table("linux/trace"):
        number = numbers[row["call"]][column]
        if number is not None:
            found[number] = Told(
                tuple(
                    (folder, path, WAYS[does[0]] if does else None)
                    for folder, path, *does in row.get("paths", ())
                ),
                row.get("flags", 0),
                row.get("address"),
            )
    return found


def program(machine: str) -> bytes:
    """Return the filter program that tells of these calls and allows all others; see `seccomp.assemble` for its form."""
    audit, _ = ARCHITECTURES[machine]
    numbers = sorted(told(machine))
    made = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _NUMBER),
    ]
    # Each comparison jumps to the last instruction, over what is left of them and the one that allows.
    made += [(_EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
    made += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _TELL)]
    return b"".join(struct.pack("=HBBI", *one) for one in made)
