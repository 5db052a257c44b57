"""One run as the launcher sees it: a leader process, its deadline, and the proof of its death."""

from __future__ import annotations

import errno
import os
import signal
import time

from . import calls, child, supervise, watch
from .words import parse

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    import socket
    from typing import Any

    from .spare import Spare

KILL_MARGIN = 3.0  # seconds a supervisor gets beyond the grace before it is killed itself


_MOST_SECONDS = 1e9  # thirty years; beyond, sums of floats lose the seconds


def _bounded(seconds: object) -> float:
    """Return a time as a number that clocks can be compared with; ValueError for NaN and below zero."""
    number = float(seconds)  # type: ignore[arg-type] # TypeError is caught where the request is taken
    if not number >= 0:
        raise ValueError(f"{number} is no time")
    return min(number, _MOST_SECONDS)


class Run:
    """A started run.

    `mode` says what ends the tree: "group", a process group that seccomp keeps the script in, ended by
    killpg, which the kernel makes atomic against fork; "init", a process-id namespace, which ends with
    its init; or "tree", a supervisor above the script.
    """

    def __init__(self, terms: dict[str, Any], *, control: socket.socket) -> None:
        """Take the terms: how the tree is ended, and when."""
        self.control = control
        self.mode = terms["mode"]
        if self.mode not in watch.MODES:  # asked for later, when an error would be everybody's
            raise ValueError(f"there is no mode {self.mode!r}"[:200])
        self.announce = bool(terms["announce"])
        self.grace = _bounded(terms["grace"])
        self.deadline = time.monotonic() + _bounded(terms["timeout"])
        self._watch = watch.Watch(
            mode=self.mode, memory=float(terms["memory"]), processes=float(terms["processes"])
        )
        self.hard: float | None = None
        self.reason: str | None = None
        self.killed = False
        self.reaped = False
        self.leftovers = 0
        self.ended: dict[str, Any] = {}
        self.failure: dict[str, Any] | None = None
        self.marked = False  # the leader said that only the exec was left to do
        self.buried: set[int] = set()
        self.facts: dict[str, Any] = {}
        self.pid = 0
        self.world: int | None = None  # a descriptor of its mounts
        self.report, self._reporting = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.report, False)  # it is read after the end, and must never be waited for

    def start(self, spare: Spare | None, *, launcher: int, descriptors: list[int]) -> None:
        """Start the leader: a spare is given the plan, a supervisor is forked with it.

        `descriptors` are the plan and the run's pipes; they stay the caller's to close. Raises OSError
        when the spare is dead or nothing can be forked.
        """
        try:
            if spare is not None:
                spare.give([self._reporting, *descriptors])
                self.pid = spare.pid
                self.world, spare.world = spare.world, None
                spare.drop()
                return
            plan_file, *pipes = descriptors
            self.pid = calls.clone(signal.SIGCHLD)
            if self.pid == 0:
                with child.never_returning():
                    signal.set_wakeup_fd(-1)
                    supervise.supervise(
                        plan_file,
                        descriptors=pipes,
                        report=self._reporting,
                        launcher=launcher,
                        grace=self.grace,
                    )
        finally:
            if self.pid:
                os.close(self._reporting)

    def let_go(self) -> None:
        """Leave it to the end of its init to take down its mounts."""
        if self.world is not None:
            os.close(self.world)
            self.world = None

    def give_up(self) -> None:
        """Close what an unstarted run holds."""
        os.close(self.report)
        os.close(self._reporting)

    def heard(self) -> bool:
        """Read the report pipe; return whether there may be more."""
        try:
            words = os.read(self.report, 65536)
        except BlockingIOError:
            return False
        for line in words.splitlines():
            message = parse(line)
            if "stage" in message:
                self.failure = message
            elif "status" in message:
                self.ended = message
            else:
                self.marked = True
                self.facts.update(message)
        return bool(words)

    def end(self, reason: str, *, now: bool = False) -> None:
        """Ask the tree to end, and set the time when it is ended without asking; at once where it has no grace."""
        if self.reason is None:
            self.reason = reason
        asked = self.hard is not None
        if now or not (asked or self.grace):
            self.kill()
        elif not asked:
            self.hard = time.monotonic() + self.grace
            self._signal(signal.SIGTERM)
            # A stopped process handles SIGTERM only once continued; an unconfined script can stop its supervisor.
            self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the tree without asking."""
        if self.mode == "tree":
            if self.killed:
                self._signal(signal.SIGKILL)
            else:
                self._signal(signal.SIGINT)
            self.hard = time.monotonic() + KILL_MARGIN
        else:
            self._signal(signal.SIGKILL)
            self.hard = time.monotonic() + KILL_MARGIN
        self.killed = True

    def _signal(self, number: int) -> None:
        """Signal the group or the supervisor. The leader is not reaped yet, so the number is still its own."""
        if self.reaped:
            return
        try:
            if self.mode == "group":
                os.killpg(self.pid, number)
            else:
                # An init, or a supervisor, passes it on. Here the processes below could only be told one by one, by
                # numbers that are somebody else's once they have ended.
                os.kill(self.pid, number)
        except OSError as problem:
            # ESRCH: the child has not come to its setsid yet; there is nobody but the leader then.
            if problem.errno == errno.ESRCH and self.mode == "group":
                os.kill(self.pid, number)

    def leader_exited(self) -> None:
        """Reap the leader after everything else of its group was killed.

        The order is the point: while the leader is a zombie its process id can't be used again, so
        killpg can't hit a stranger, even after a normal exit.
        """
        if self.mode == "group":
            self._signal(signal.SIGKILL)
        _, status, usage = os.wait4(self.pid, 0)
        self.reaped = True
        if self.mode == "group" or "status" not in self.ended:
            own = {"status": status, "cpu": usage.ru_utime + usage.ru_stime, "rss": usage.ru_maxrss}
            self.ended = {**own, **self.ended}

    def over(self) -> bool:
        """Tell whether nothing of this run is left: the kernel has no child of this group for us.

        Every orphan of the run is our child (we are the nearest subreaper), and it can't leave the
        group, so ECHILD is a proof and the end of the pipes is not.
        """
        if not self.reaped:
            return False
        if self.mode != "group":
            return True  # an init is reaped after everything in its namespace; a supervisor says so itself
        try:
            for _ in range(supervise.BATCH):
                found = os.waitid(os.P_PGID, self.pid, os.WEXITED | os.WNOHANG)
                if found is None:
                    break
                self.count(found)
        except ChildProcessError:
            return True
        return False

    def count(self, found: os.waitid_result) -> None:
        """Count a reaped member as a leftover when it was our SIGKILL that ended it."""
        if found.si_code == os.CLD_KILLED and found.si_status == signal.SIGKILL:
            self.leftovers += 1

    def next_wake(self) -> float:
        """Return the monotonic time of the next thing to do by the clock."""
        return min(self.deadline, self._watch.due) if self.hard is None else self.hard

    def tick(self, now: float) -> None:
        """Do what the clock asks for."""
        if self.hard is None:
            if now >= self.deadline:
                self.end("timed_out")
            elif now >= self._watch.due and not self.reaped:
                self._look()
        elif now >= self.hard:
            self.kill()

    def _look(self) -> None:
        """End the run when its tree has more than it may have."""
        found = self._watch.go_on(self.pid)
        if found is not None:
            what, amount = found
            self.facts[what] = amount
            self.end({"memory": "memory_limit", "processes": "process_limit"}[what], now=True)

    def result(self) -> dict[str, Any]:
        """Describe the end of the run for the owner."""
        leftovers = self.leftovers + len(self.buried) + self.ended.get("leftovers", 0)
        if not self.marked and self.failure is None and self.reason is None:
            message = "its process was killed before the script was started"
            self.failure = {"stage": "start", "errno": None, "message": message}
        # In a group the leader itself makes the exec, which can still fail after the mark; an init or a
        # supervisor gives the mark once the script runs.
        if self.failure is not None and (self.mode == "group" or not self.marked):
            return {"event": "failed", **self.failure}
        facts = {name: self.ended.get(name) for name in ("status", "cpu", "rss")}
        return {"event": "ended", "reason": self.reason, "leftovers": leftovers, **facts, **self.facts}
