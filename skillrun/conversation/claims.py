"""Claims: which process makes a call, and how others see that it never will.

A process that died is seen at once on its own host; its scripts died with it (law 9), so a call that is taken over
never overlaps with the one before. Elsewhere the claim has to run out.
"""

from __future__ import annotations

import contextlib
import os
import platform
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from skillrun.conversation.entry import Claim

if TYPE_CHECKING:
    from collections.abc import Callable

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_TOLERANCE: Final = 1.5  # seconds between two readings of when a process was born, where psutil rounds
_STAT: Final = 19  # the 22nd field of proc_pid_stat(5), counted behind the name


def born(pid: int) -> float | None:
    """Return when a process was born, in seconds since the boot; None for one that is not, or is only to be reaped.

    Elsewhere than on Linux in seconds since 1970.
    """
    with contextlib.suppress(psutil.Error, OSError, ValueError, OverflowError, IndexError):
        if _BOOT_ID.exists():
            # psutil adds the time of the boot, which moves when somebody sets the clock: a living process would
            # be taken for another one, and its call made twice.
            fields = Path(f"/proc/{int(pid)}/stat").read_bytes().rpartition(b")")[2].split()
            return None if fields[0] in {b"Z", b"X"} else int(fields[_STAT]) / os.sysconf("SC_CLK_TCK")
        found = psutil.Process(pid)
        if found.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}:
            return float(found.create_time())
    return None


def host() -> str:
    """Return what tells the processes that see each other from all others: containers may share a host's name."""
    with contextlib.suppress(OSError):
        return f"{platform.node()} {Path('/proc/self/ns/pid').readlink()}"
    return platform.node()


def boot() -> str:
    """Return what tells this boot of the machine from every other."""
    with contextlib.suppress(OSError):
        return _BOOT_ID.read_text(encoding="ascii").strip()
    return f"{psutil.boot_time():.0f}"


def since_boot() -> float:
    """Return the seconds since the machine was started, those it slept included; nobody can set this clock."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


@dataclass(frozen=True, slots=True)
class Here:
    """Where and when this process is. Tests give other clocks and other processes."""

    host: str = field(default_factory=host)
    boot: str = field(default_factory=boot)
    clock: Callable[[], float] = since_boot
    wall: Callable[[], float] = time.time
    born: Callable[[int], float | None] = born
    pid: Callable[[], int] = os.getpid

    def claim(self, seconds: float) -> Claim:
        """Return a claim of this process for so many seconds."""
        pid = self.pid()
        return Claim(
            self.host,
            self.boot,
            pid,
            self.born(pid) or 0.0,
            self.clock() + seconds,
            self.wall() + seconds,
        )

    def lapsed(self, claim: Claim) -> bool:
        """Whether whoever made a claim is dead, or its time is over."""
        if claim.host != self.host:
            return self.wall() > claim.until_wall
        if claim.boot != self.boot or self.clock() > claim.until:
            return True
        found = self.born(claim.pid)
        return found is None or abs(found - claim.born) > _TOLERANCE

    def mine(self, claim: Claim) -> bool:
        """Whether a claim is of this process."""
        return (claim.host, claim.boot, claim.pid) == (self.host, self.boot, self.pid())
