"""The warden: a subreaper that only waits, kills what it inherits, and clears away scratch folders.

It exists for the day the launcher is killed. Whatever the launcher had started becomes a child of the
warden, because the warden is the nearest subreaper above it (prctl(2), PR_SET_CHILD_SUBREAPER).
"""

from __future__ import annotations

import os
import signal
import sys
import time

from . import calls, child, supervise

_PAUSE = 0.002


def main(arguments: list[str]) -> int:
    """Start the launcher and outlive it: SOCKET_FD OWNER_PID SCRATCH_ROOT VERSION."""
    socket, owner = int(arguments[0]), int(arguments[1])
    scratch, version = arguments[2], int(arguments[3])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # whoever ends the owner ends us, by its death
    while os.open("/dev/null", os.O_RDWR) < child.EVENTS_FD + 1:
        pass  # runs receive 0 to 3 by dup2: nothing of ours may lie there
    calls.prctl(calls.PR_SET_CHILD_SUBREAPER, 1)
    owner_death = os.pidfd_open(owner)
    if os.getppid() != owner:
        return 1  # the owner died before the pidfd was taken, and the number may be somebody else's
    own_death = os.pidfd_open(os.getpid())
    launcher = os.fork()
    if launcher == 0:
        from .launcher import Launcher

        try:
            Launcher(socket, owner=owner_death, warden=own_death, version=version).serve()
        finally:
            remove_tree(scratch)
            os._exit(0)
    os.close(socket)
    while True:
        try:
            pid, _ = os.waitpid(-1, 0)
        except ChildProcessError:
            break
        if pid == launcher:
            bury()
            break
    remove_tree(scratch)
    return 0


def bury() -> None:
    """Kill everything that was inherited, whole process groups first, until no child is left."""
    own_group = os.getpgrp()
    while True:
        left = supervise.children(os.getpid(), os.getpid())
        supervise.bury(left, own_group=own_group)
        try:
            for _ in range(max(supervise.BATCH, len(left))):
                if not os.waitpid(-1, os.WNOHANG)[0]:
                    time.sleep(_PAUSE)
                    break
        except ChildProcessError:
            return


def remove_tree(root: str) -> None:
    """Remove a folder tree without following links and without recursion, however deep it is.

    It was writable for scripts: only names relative to opened folders are used, never a built path,
    and a folder without permission bits is given them back first.
    """
    if sys.platform != "linux" or not root:
        return
    from .trees import remove_root

    remove_root(root)
