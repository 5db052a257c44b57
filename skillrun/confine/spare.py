"""A leader made ahead of its run: forked, confined as far as that needs no plan, and waiting for one.

A fork costs about a millisecond until the child runs, most of it page tables and first touches of
memory. Made when the run before it is over, or goes on, that cost is off the path of both.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket

from . import calls, child, init, world

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from typing import Any

_LEAST = 4  # descriptors of a run besides its report pipe: the plan and three pipes
_READY, _SPOILED = b"ready", b"spoiled"
_MOMENT = 20  # milliseconds; preparing takes three
_OWN = child.EVENTS_FD + 1  # where the spare keeps its end of the socket; 0 to 3 are for the run


class Spare:
    """A process that becomes the leader of one run. `pid` is also its process group.

    `key` names the base it was prepared for; it serves no run with another one.
    """

    def __init__(self, *, launcher: int, key: int, base: dict[str, Any]) -> None:
        """Fork and prepare for a base."""
        self.key = key
        ids = os.getuid(), os.getgid()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.pid = _clone(base)
            if self.pid == 0:
                with child.never_returning():
                    _wait(theirs.fileno(), launcher=launcher, base=base, ids=ids)
        except OSError:
            self._socket.close()
            raise
        finally:
            theirs.close()

    def give(self, descriptors: list[int]) -> None:
        """Hand over the report pipe, the plan and the run's pipes. Raises OSError when the spare is dead."""
        socket.send_fds(self._socket, [b"plan"], descriptors)
        self._socket.close()

    def usable(self) -> bool:
        """Tell once whether it is alive and prepared: it says how it went, and the end of its socket is its death.

        A run that it is given has to wait for that anyway. One that takes its time is taken for good, as the clocks of
        other runs go on.
        """
        waiter = select.poll()
        waiter.register(self._socket, select.POLLIN)
        if not waiter.poll(_MOMENT):
            return True
        try:
            return self._socket.recv(16, socket.MSG_DONTWAIT) == _READY
        except OSError:
            return False

    def drop(self) -> None:
        """Let a spare go that nobody will use: it ends at the end of its socket."""
        self._socket.close()


def _clone(base: dict[str, Any]) -> int:
    """Clone a leader: for a world of its own an init, with the signals blocked that an init waits for."""
    if base["level"] == 1:
        return calls.clone(signal.SIGCHLD)
    signal.pthread_sigmask(signal.SIG_BLOCK, init.AWAITED)
    pid = -1
    try:
        pid = calls.clone(signal.SIGCHLD | world.flags(base))
    finally:
        if pid:  # not in the child
            signal.pthread_sigmask(signal.SIG_UNBLOCK, init.AWAITED)
    return pid


def _say(waiting: socket.socket, word: bytes) -> None:
    """Say how it went, to a launcher that may have sent the plan and closed its end."""
    try:
        waiting.send(word)
    except OSError:
        pass


def _hear(waiting: socket.socket) -> tuple[bytes, list[int], int, Any]:
    """Receive the plan and what comes with it.

    A launcher that closes its end with our word unread makes the kernel say ECONNRESET, once and before what was sent
    (unix(7), unix_release_sock).
    """
    try:
        return socket.recv_fds(waiting, 16, 8, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return socket.recv_fds(waiting, 16, 8, socket.MSG_CMSG_CLOEXEC)


def _wait(connection: int, *, launcher: int, base: dict[str, Any], ids: tuple[int, int]) -> None:
    """Prepare, wait for a plan, and become its script; never returns."""
    signal.set_wakeup_fd(-1)
    child.follow_to_death(launcher)
    os.dup2(connection, _OWN, inheritable=False)
    # The launcher's descriptors lead to other runs; a process that waits must not hold them open.
    calls.close_from(_OWN + 1)
    failure: tuple[str, BaseException] | None = None
    stage = "maps"
    try:
        if base["level"] > 1:
            world.map_ids(*ids)
            stage = "prepare"
            child.lead(blocked=init.AWAITED)
            root = world.World(base)
            calls.drop_bounding_set()  # ahead of the plan: it is forty calls, and mounting needs none of what it takes
        else:
            stage = "prepare"
            child.prepare()
            made = child.Base(base)
    except BaseException as problem:  # noqa: BLE001 - told to the run that this becomes
        failure = (stage, problem)
    with socket.socket(fileno=_OWN) as waiting:
        # What was in the way may be gone by the time of the next run, which then forks its own leader.
        _say(waiting, _READY if failure is None else _SPOILED)
        words, received, flags, _ = _hear(waiting)
    if not words or not received:
        os._exit(0)
    report, *rest = received
    if failure is None and (flags & socket.MSG_CTRUNC or len(rest) < _LEAST):
        failure = (
            "request",
            OSError(errno.EMFILE, "its descriptors did not fit below the limit of open files"),
        )
    if failure is not None:
        child.fail(report, *failure)
        os._exit(127)
    plan_file, *descriptors = rest
    try:
        plan = child.read_plan(plan_file)
    except BaseException as problem:  # noqa: BLE001 - the other end must hear of it
        child.fail(report, "plan", problem)
        os._exit(127)
    if base["level"] > 1:
        init.rule_over(plan, descriptors=descriptors, report=report, base=base, root=root)
    child.become(plan, descriptors=descriptors, report=report, base=made)
