"""What is left when launcher and warden are killed together: the owner ends the group of the run itself.

The leader dies with its launcher (PR_SET_PDEATHSIG), what it had started does not: that signal is not
inherited over a fork. Every such process is still in the leader's group, which the filter lets nobody
leave, and the kernel gives the group's number to no new process while one of them lives.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Final

_PATIENCE: Final = 5.0  # seconds until three hundred processes are dead; it takes about 0.05
_PAUSE: Final = 0.002


def end_group(leader: int) -> None:
    """Kill a confined run's group and return once none of it is alive."""
    if _is_strangers(leader):
        return
    try:
        os.killpg(leader, signal.SIGKILL)  # atomic against fork: no member can make another one after it
    except ProcessLookupError:
        return
    last = time.monotonic() + _PATIENCE
    while time.monotonic() < last and any(_is_member(pid, leader) for pid in _processes()):
        time.sleep(_PAUSE)


def _is_strangers(leader: int) -> bool:
    """Tell whether the leader's number has gone to somebody else, whose group this then is.

    A process of ours runs under a filter. Where there is none of that number, the group can't be a new one: its
    leader would have had to come and go within this moment.
    """
    try:
        with open(f"/proc/{leader}/status", "rb") as file:  # noqa: PTH123 - bytes, as the name in it can be any
            status = file.read()
    except OSError:
        return False
    return b"\nState:\tZ" not in status and b"\nSeccomp:\t2\n" not in status


def _processes() -> list[int]:
    """List the processes of this machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - only names are needed


def _is_member(pid: int, leader: int) -> bool:
    """Tell whether a process is in the group and not dead; who is not ours to reap stays a zombie for a while."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as above
            state, _, group = file.read().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return state not in b"ZX" and int(group) == leader
