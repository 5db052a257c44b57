"""The launcher: one thread that starts runs, watches clocks, and reports only what it has proof of."""

from __future__ import annotations

import errno
import gc
import json
import os
import select
import signal
import socket
import time

from . import calls, supervise
from .run import Run
from .stock import Stock
from .words import parse

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from typing import Any

_LONGEST_WAIT = 3600.0  # seconds; poll(2) takes an int of milliseconds
_BURYING = 2  # milliseconds between two looks at what is being buried
# A fork takes a processor, and at level 2 the kernel's lock on mounts, from the run that was just started: a run as short as
# any is over by then, and nothing is lost on one that goes on.
_SETTLED = 0.005  # seconds after a start
# Whom a message wakes often stays on our processor (WF_SYNC in kernel/sched/fair.c), and would wait for the fork there: the
# owner, which has its result to finish. One that asks for run upon run would find no spare instead.
_BREATH = 0.0005  # seconds after the last word on a run
_CROWD = 2  # runs at once
_LEAST, _MOST = 4, 8  # descriptors of a request behind the control socket: plan, three pipes; and events


class Launcher:
    """Serves one owner over a socket, until the owner, the warden or the socket is gone."""

    def __init__(self, connection: int, *, owner: int, warden: int, version: int) -> None:
        """Take the connection and say hello with what this kernel offers."""
        calls.prctl(calls.PR_SET_CHILD_SUBREAPER, 1)
        self._socket = socket.socket(fileno=connection)
        self._own_death = os.pidfd_open(os.getpid())
        self._deaths = {owner, warden}
        self._wake, woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._poll = select.poll()
        self._stock = Stock(self._own_death, self._poll)
        self._stocking: float | None = None  # the time at which to fork the next spare
        self._worlds: list[int] = []  # mounts of runs that are over, taken down when there is time for it
        self._rested = 0.0  # when there was last no run under way
        self._hurried = False  # the last run came right upon the one before
        self._unswept = False  # the last sweep stopped before it had seen all of the dead
        self._runs: dict[int, Run] = {}  # by the descriptor of the control socket
        self._spot = os.dup(
            self._wake
        )  # keeps a place for a control socket, so that any request can be answered
        for descriptor in (self._socket.fileno(), owner, warden, self._wake):
            self._poll.register(descriptor, select.POLLIN)
        # Runs are forked from here: what is never collected is never written, and stays shared.
        gc.freeze()
        hello = {
            "event": "hello",
            "version": version,
            "pid": os.getpid(),
            "machine": calls.MACHINE,
            "landlock": calls.landlock_abi(),
            "seccomp": calls.seccomp_usable(),
        }
        self._socket.send(json.dumps(hello).encode())

    def serve(self) -> None:
        """Serve until somebody we depend on is gone, then end every run."""
        try:
            while self._step():
                pass
        finally:
            self._stock.drop()
            self._end_all()

    def _step(self) -> bool:
        """Wait for one thing to happen and deal with it; return whether to go on."""
        # Spares first: what is closed below could be the number of something new before it is come to.
        happened = [one for one, _ in self._poll.poll(self._patience()) if not self._stock.hear(one)]
        if self._stock.mounts in happened:  # before a request that came with it
            self._stock.drop_worlds()
        for descriptor in happened:
            if not self._serve(descriptor):
                return False
        if self._unswept:
            self._sweep()
        self._advance()
        if self._spot < 0:
            self._keep_spot()
        if self._stocking is not None and time.monotonic() >= self._stocking:
            self._restock()
        return True

    def _serve(self, descriptor: int) -> bool:
        """Deal with one descriptor that is ready; return whether to go on."""
        if descriptor in self._deaths:
            return False
        if descriptor == self._socket.fileno():
            return self._accept()
        if descriptor == self._wake:
            self._sweep()
        elif descriptor in self._runs:
            self._hear_owner(self._runs[descriptor])
        return True

    def _advance(self) -> None:
        """Do for every run what its clock asks for; with the last of them over, there is time for the next spare."""
        now = time.monotonic()
        for run in list(self._runs.values()):
            run.tick(now)
            self._settle(run)
        if (self._stocking is not None or self._worlds) and not self._runs:
            if not self._hurried:
                time.sleep(_BREATH)
            self._rested = time.monotonic()
            self._stocking = 0.0

    def _patience(self) -> int | None:
        """Return the milliseconds until the next clock runs out, None when there is none."""
        if self._unswept:
            return 0
        if not self._runs:
            return None
        if any(run.reaped for run in self._runs.values()):
            return _BURYING
        wake = min(run.next_wake() for run in self._runs.values())
        if self._stocking is not None:
            wake = min(wake, self._stocking)
        return max(0, int(min(wake - time.monotonic(), _LONGEST_WAIT) * 1000) + 1)

    def _accept(self) -> bool:
        """Receive one request: descriptors of the control socket, the plan and the run's pipes."""
        if self._spot >= 0:
            os.close(self._spot)
        words, descriptors, flags, _ = socket.recv_fds(self._socket, 4096, _MOST, socket.MSG_CMSG_CLOEXEC)
        self._keep_spot()
        if not words:
            return False
        cut = bool(flags & socket.MSG_CTRUNC)
        if len(descriptors) == 1 and not cut:
            self._stock.learn(words, descriptors[0])
            return True
        control, *rest = descriptors or [-1]
        try:
            channel = socket.socket(fileno=control)
        except (OSError, ValueError):
            channel = None
        if channel is None or len(rest) < _LEAST:
            self._refuse(channel, descriptors, cut=cut)
            return True
        try:
            run = self._start(parse(words), channel, rest)
        except Exception as problem:  # noqa: BLE001 - one bad request must not end everybody's runs
            refusal = {
                "stage": "plan",
                "errno": getattr(problem, "errno", None),
                "message": repr(problem)[:500],
            }
            self._send(channel, {"event": "failed", **refusal})
            channel.close()
            return True
        finally:
            for descriptor in rest:
                os.close(descriptor)
        self._runs[control] = run
        self._poll.register(control, select.POLLIN)
        if run.announce:
            self._send(channel, {"event": "started", "pid": run.pid})
        return True

    def _refuse(self, channel: socket.socket | None, descriptors: list[int], *, cut: bool) -> None:
        """Answer a request whose descriptors the limit of open files cut off, or that are none of a run's."""
        if channel is not None:
            number = errno.EMFILE if cut else errno.EINVAL
            message = f"descriptors are missing: {os.strerror(number)}"
            self._send(channel, {"event": "failed", "stage": "request", "errno": number, "message": message})
            channel.detach()
        for descriptor in descriptors:
            os.close(descriptor)

    def _keep_spot(self) -> None:
        """Hold the lowest free place for the next control socket, if there is one."""
        try:
            self._spot = os.dup(self._wake)
        except OSError:
            self._spot = -1

    def _start(self, terms: dict[str, Any], channel: socket.socket, descriptors: list[int]) -> Run:
        """Start a run, with the spare if it lives, else with a new one."""
        run = Run(terms, control=channel)
        try:
            if run.mode == "tree":
                run.start(None, launcher=self._own_death, descriptors=descriptors)
                return run
            self._stock.expect(terms)
            now = time.monotonic()
            self._hurried = now < self._rested + _SETTLED
            if self._stocking is None:  # runs that start one upon the other do not put it off for ever
                self._stocking = now + _SETTLED
            self._lead(run, terms, descriptors)
            self._hold(run)
        except BaseException:
            run.give_up()
            raise
        return run

    def _lead(self, run: Run, terms: dict[str, Any], descriptors: list[int]) -> None:
        """Give a leader the plan. Raises OSError when not even a new one takes it.

        The owner hears first which process it is: it ends the run itself when launcher and warden are killed together, so
        it must know before there is anything to end.
        """
        dead: OSError | None = None
        for spare in self._stock.leaders(terms):
            self._send(run.control, spare.announcement, spare.death)
            try:
                run.start(spare, launcher=self._own_death, descriptors=descriptors)
            except OSError as problem:
                spare.drop()  # the sweep reaps it
                dead = problem
            else:
                return
        if dead is not None:
            raise dead

    def _hold(self, run: Run) -> None:
        """Hold the mounts of a run that is alone, so that its end has not to wait until they are taken down.

        The kernel does that at the end of its init, in which nothing else goes on; here it is done when there is time
        for it. Of several runs each does its own: they would wait for us.
        """
        if self._runs:
            for other in (run, *self._runs.values()):
                other.let_go()

    def _restock(self) -> None:
        """Have leaders ready for the next run, and take down the mounts of those that are over.

        Of runs that come one upon the other, or beside others, the next one is there before a world is.
        A leader that is forked first has a descriptor of them for a moment, so that mostly it is its processor that does.
        """
        self._stocking = None
        self._stock.restock(worlds=not self._hurried and len(self._runs) < _CROWD)
        for world in self._worlds:
            os.close(world)
        self._worlds.clear()

    def _hear_owner(self, run: Run) -> None:
        """Cancel at a message on the control socket; at its end nobody waits any more, so end the run at once."""
        try:
            words = run.control.recv(64)
        except OSError:
            words = b""
        if words:
            run.end("cancelled")
        else:
            self._poll.unregister(run.control.fileno())
            run.end("cancelled", now=True)

    def _sweep(self, most: int = supervise.BATCH) -> None:
        """Look at the dead children. Leaders are handled by their runs, orphans are reaped and counted.

        Not at all of them where there are many: a script can make more as fast as they are reaped, and the clocks of
        every run would wait for it.
        """
        try:
            os.read(self._wake, 4096)
        except BlockingIOError:
            pass
        leaders = {run.pid: run for run in self._runs.values() if not run.reaped}
        self._unswept = False
        for _ in range(most):
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            leader = leaders.get(found.si_pid)
            if leader is not None:
                leader.leader_exited()
                continue
            run = self._run_of(found.si_pid)
            os.waitpid(found.si_pid, 0)
            if not self._stock.bury(found.si_pid) and run is not None and run.reaped:
                run.count(found)
        self._unswept = True

    def _run_of(self, pid: int) -> Run | None:
        """Return the run whose process group a dead, unreaped process is in."""
        group = os.getpgid(pid)
        return next((run for run in self._runs.values() if run.pid == group), None)

    def _settle(self, run: Run) -> None:
        """Report a run once there is proof that nothing of it is left."""
        if not run.over():
            return
        while run.heard():
            pass
        if run.mode == "tree" and self._bury_strays(run):
            return
        self._send(run.control, run.result())
        control = run.control.fileno()
        try:
            self._poll.unregister(control)
        except KeyError:
            pass
        del self._runs[control]
        run.control.close()
        os.close(run.report)
        if run.world is not None:
            self._worlds.append(run.world)

    def _bury_strays(self, run: Run) -> bool:
        """Kill children that no run accounts for, which a killed supervisor left; return whether there were any.

        None is a proof that nothing is left. The first above any stray is a child of ours, and it stays in
        the list until we reap it, so a list that is read while they fork and die misses none.
        """
        self._sweep(max(supervise.BATCH, len(supervise.children(os.getpid(), os.getpid()))))
        known = {other.pid for other in self._runs.values()} | self._stock.pids
        strays = [
            pid
            for pid in supervise.children(os.getpid(), os.getpid())
            if pid not in known and os.getpgid(pid) not in known
        ]
        hit = supervise.bury(strays, own_group=os.getpgrp())
        if (
            "leftovers" not in run.ended
        ):  # a supervisor that came to its end has left none: a spare that was dropped
            run.buried.update(hit)
        return bool(strays)

    @staticmethod
    def _send(control: socket.socket, message: dict[str, Any] | bytes, *descriptors: int | None) -> None:
        """Send a message to the owner, who may be gone."""
        words = message if isinstance(message, bytes) else json.dumps(message).encode()
        try:
            socket.send_fds(control, [words], [one for one in descriptors if one is not None])
        except OSError:
            pass

    def _end_all(self) -> None:
        """Kill every run and wait until all of them are gone. The warden does the same if we can't."""
        for run in self._runs.values():
            run.end("cancelled", now=True)
        while self._runs:
            self._poll.poll(0 if self._unswept else 10)
            self._sweep()
            now = time.monotonic()
            for run in list(self._runs.values()):
                run.tick(now)
                self._settle(run)
