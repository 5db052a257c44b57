"""What is left when launcher and warden are killed together: the owner ends the run itself.

The leader dies with its launcher (PR_SET_PDEATHSIG), but later: the end of the launcher's sockets, which tells the owner,
comes before that signal (do_exit in kernel/exit.c). An init takes its namespace with it. What the leader of a group had
started lives on, as that signal is not inherited over a fork: every such process is still in the leader's group, which the
filter lets nobody leave, and the kernel gives the group's number to no new process while one of them lives.
"""

from __future__ import annotations

import contextlib
import os
import select
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


def end_world(init: int) -> None:
    """Kill the init of a confined run and return once it, and with it its whole namespace, is dead (pid_namespaces(7))."""
    try:
        held = os.pidfd_open(init)
    except OSError:  # ESRCH: it is dead
        return
    try:
        if _is_an_init(init):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(held, signal.SIGKILL)
            waiter = select.poll()
            waiter.register(held, select.POLLIN)
            waiter.poll(_PATIENCE * 1000)
    finally:
        os.close(held)


def _is_an_init(pid: int) -> bool:
    """Tell whether a number is that of the first process of a namespace, and so not of a stranger who got it meanwhile."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123 - bytes, as the name in it can be any
            ids = next((line for line in file if line.startswith(b"NSpid:")), b"").split()
    except OSError:
        return False
    return len(ids) > 2 and ids[-1] == b"1"  # noqa: PLR2004 - the word, ours, and its own


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
