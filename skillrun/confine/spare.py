"""A leader made ahead of its run: forked, confined as far as that needs no plan, and waiting for one.

A fork costs about a millisecond until the child runs, most of it page tables and first touches of
memory. Made when the run before it is over, or goes on, that cost is off the path of both.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import select
import signal
import socket

from . import calls, child, init, world
from .leader import prepared

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from typing import Any

    from .leader import Foreseen, Group, Init

_READY, _SPOILED = b"ready", b"spoiled"
_MOMENT = 20  # milliseconds; preparing takes three
_OWN = child.EVENTS_FD + 1  # where the spare keeps its end of the socket; 0 to 3 are for the run


class Spare:
    """A process that becomes the leader of one run. `pid` is also its process group.

    `key` names the base it was prepared for; it serves no run with another one. `foreseen` is what its world was built
    for, None where it waits for a plan to tell. `ready` is its word: None before it comes.
    """

    def __init__(
        self, *, launcher: int, key: int, base: dict[str, Any], foreseen: Foreseen | None = None
    ) -> None:
        """Fork and prepare for a base, or for a whole world."""
        self.key = key
        self.level = int(base["level"])
        self.foreseen = foreseen
        self.ready: bool | None = None
        self.world: int | None = None
        ids = os.getuid(), os.getgid()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.pid = _clone(base)
            if self.pid == 0:
                with child.never_returning():
                    _wait(theirs.fileno(), launcher=launcher, base=base, ids=ids, foreseen=foreseen)
            self.death = _death(self.pid)
            # Written now: when it is needed the script waits for it.
            self.announcement = json.dumps({"event": "leader", "pid": self.pid}).encode()
        except OSError:
            self._socket.close()
            raise
        finally:
            theirs.close()

    def give(self, descriptors: list[int]) -> None:
        """Hand over the report pipe, the plan and the run's pipes. Raises OSError when the spare is dead."""
        socket.send_fds(self._socket, [b"plan"], descriptors)
        self._socket.close()

    def fits(self, terms: dict[str, Any]) -> bool:
        """Tell whether it can lead a run on these terms."""
        asked = terms.get("frame"), terms.get("scratch")
        return bool(self.key == terms["base"] and (self.foreseen is None or self.foreseen.asked == asked))

    def fileno(self) -> int:
        """Give the descriptor that it is heard by."""
        return self._socket.fileno()

    def usable(self) -> bool:
        """Tell whether it is alive and prepared: it says how it went, and the end of its socket is its death.

        A run that it is given has to wait for that anyway. One that takes its time is taken for good, as the clocks of
        other runs go on.
        """
        if self.ready is None:
            waiter = select.poll()
            waiter.register(self._socket, select.POLLIN)
            if not waiter.poll(_MOMENT):
                return True
            self.hear()
        return bool(self.ready)

    def hear(self) -> None:
        """Take its word, and with it a descriptor of its mounts, `world`."""
        try:
            words, received, _, _ = socket.recv_fds(
                self._socket, 16, 1, socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
            )
        except OSError:
            words, received = b"", []
        self.ready = words == _READY
        if received:
            self.world = received[0]

    def drop(self) -> None:
        """Let a spare go that nobody will use: it ends at the end of its socket."""
        self._socket.close()
        for descriptor in (self.world, self.death):
            if descriptor is not None:
                os.close(descriptor)
        self.world = self.death = None


def _death(pid: int) -> int | None:
    """Return a pidfd of a child, None without a free descriptor: who is told of it does without."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


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


def _say(waiting: socket.socket, word: bytes, mounts: int | None = None) -> None:
    """Say how it went, to a launcher that may have sent the plan and closed its end; what goes with it is closed here."""
    held = [] if mounts is None else [mounts]
    try:
        socket.send_fds(waiting, [word], held)
    except OSError:
        pass
    for descriptor in held:
        os.close(descriptor)


def _hear(waiting: socket.socket) -> tuple[bytes, list[int], int, Any]:
    """Receive the plan and what comes with it.

    A launcher that closes its end with our word unread makes the kernel say ECONNRESET, once and before what was sent
    (unix(7), unix_release_sock).
    """
    try:
        return socket.recv_fds(waiting, 16, 8, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return socket.recv_fds(waiting, 16, 8, socket.MSG_CMSG_CLOEXEC)


def _wait(
    connection: int,
    *,
    launcher: int,
    base: dict[str, Any],
    ids: tuple[int, int],
    foreseen: Foreseen | None,
) -> None:
    """Prepare, wait for a plan, and become its script; never returns."""
    signal.set_wakeup_fd(-1)
    child.follow_to_death(launcher)
    os.dup2(connection, _OWN, inheritable=False)
    # The launcher's descriptors lead to other runs; a process that waits must not hold them open.
    calls.close_from(_OWN + 1)
    gc.disable()  # it would touch, and so copy, what is shared with the launcher; nothing here lives long
    leader: Group | Init | child.StepError
    mounts: int | None = None
    try:
        leader = prepared(base, ids, foreseen)
        mounts = leader.mounts
    except child.StepError as problem:
        leader = problem  # told to the run that this becomes
    with socket.socket(fileno=_OWN) as waiting:
        # What was in the way may be gone by the time of the next run, which then forks its own leader.
        _say(waiting, _SPOILED if isinstance(leader, child.StepError) else _READY, mounts)
        words, received, flags, _ = _hear(waiting)
    if not words or not received:
        os._exit(0)
    report, *rest = received
    try:
        _become(leader, rest, report=report, cut=bool(flags & socket.MSG_CTRUNC))
    except child.StepError as problem:
        child.fail(report, problem.stage, problem.problem)
    except BaseException as problem:  # noqa: BLE001 - the other end must hear of it
        child.fail(report, "plan", problem)
    os._exit(127)


def _become(leader: Group | Init | child.StepError, rest: list[int], *, report: int, cut: bool) -> None:
    """Read the plan and do what it says; never returns. Raises StepError, also what has gone wrong before."""
    if isinstance(leader, child.StepError):
        raise leader
    if cut or len(rest) <= leader.pipes:
        few = OSError(errno.EMFILE, "its descriptors did not fit below the limit of open files")
        raise child.StepError("request", few)
    plan_file, *descriptors = rest
    (plan,) = child.each(("plan", lambda: child.read_plan(plan_file)))
    leader.lead(plan, descriptors, report)
