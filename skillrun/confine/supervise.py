"""A parent above an unconfined script, so that its whole tree can be found and ended.

Without a process-id namespace or a locked process group a script can leave any group it was put in.
It can't leave this: the supervisor is a child subreaper (prctl(2)), so every orphan below it becomes
its child. Ending the tree is a loop until no child is left, which a script that forks fast enough can
draw out; the guarantee `processes` is therefore `partial` at this level, and says so.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time

from . import calls, child
from .status import status

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

_PAUSE = 0.002  # seconds between two looks at a dying tree
# The dead that are reaped before anything else is looked at: a script can make them as fast as they are reaped, for ever.
BATCH = 256


def supervise(plan_file: int, *, descriptors: list[int], report: int, launcher: int, grace: float) -> None:
    """Start the script below this process, end its tree, and report its wait status; never returns.

    SIGTERM asks for the tree to be ended with `grace` seconds of time, SIGINT at once.
    """
    stage = "plan"
    try:
        plan = child.read_plan(plan_file)
        stage = "supervisor"
        child.follow_to_death(launcher)
        calls.prctl(calls.PR_SET_CHILD_SUBREAPER, 1)
        os.setsid()
        wake, woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        own = os.pidfd_open(os.getpid())
        started, starting = os.pipe2(os.O_CLOEXEC)
        leader = calls.clone(signal.SIGCHLD)
        if leader == 0:
            # Whatever goes wrong below is reported and ends there: `become` has a net of its own, and the
            # steps before it are reported by the net around this function, on the same pipe.
            signal.set_wakeup_fd(-1)
            child.follow_to_death(own)
            os.setsid()
            child.reset_signals()
            child.become(plan, descriptors=descriptors, report=starting, base=None)
        os.close(starting)
        for descriptor in descriptors:
            os.close(descriptor)
        said = b""
        while words := os.read(started, 4096):  # to its end: the exec closes the pipe
            said += words
        if said != child.MARK:  # a failure, or nothing from a leader that was killed on its way
            os.write(report, said.removeprefix(child.MARK))
            os._exit(0)
        os.write(report, child.MARK)
        status, usage = _wait(leader, wake, grace)
        leftovers = end_tree()
        ended = {"status": status, "leftovers": leftovers, "cpu": usage.ru_utime + usage.ru_stime}
        os.write(report, json.dumps({**ended, "rss": usage.ru_maxrss}).encode())
        os._exit(0)
    except BaseException as problem:  # noqa: BLE001 - whatever it is, the other end must hear of it
        child.fail(report, stage, problem)
    os._exit(127)


def _wait(leader: int, wake: int, grace: float) -> tuple[int, Any]:
    """Wait for the leader, reaping orphans, and end the tree when a signal asks for it."""
    ready = select.poll()
    ready.register(wake, select.POLLIN)
    hard: float | None = None
    while True:
        more = True
        for _ in range(BATCH):
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == leader:
                return status, usage
            if pid == 0:
                more = False
                break
        left = None if hard is None else max(0, hard - time.monotonic())
        ready.poll(0 if more else None if left is None else int(left * 1000) + 1)
        signals = _drain(wake)
        if signal.SIGTERM in signals and hard is None:
            hard = time.monotonic() + grace
            signal_tree(signal.SIGTERM)
            signal_tree(signal.SIGCONT)
        if signal.SIGINT in signals or (hard is not None and time.monotonic() >= hard):
            signal_tree(signal.SIGKILL)
            hard = time.monotonic() + _PAUSE


def _drain(wake: int) -> bytes:
    """Return the numbers of the signals that came since the last look."""
    try:
        return os.read(wake, 4096)
    except BlockingIOError:
        return b""


def end_tree() -> int:
    """Kill every process below this one until none is left; return how many there were."""
    killed: set[int] = set()
    while True:
        found = signal_tree(signal.SIGKILL)
        killed.update(found)
        try:
            for _ in range(max(BATCH, len(found))):  # to list them again takes longer than to reap them
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    time.sleep(_PAUSE)
                    break
                if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
                    killed.discard(pid)  # it had ended by itself and only waited to be reaped
        except ChildProcessError:
            return len(killed)


def signal_tree(number: int) -> list[int]:
    """Send a signal to every process below this one; return their numbers.

    Children come first, at once after they were listed: nobody but us can reap them, so their numbers are theirs, and a
    script whose processes replace themselves all the time has only children of ours, which soon are gone.
    """
    top = children(os.getpid(), os.getpid())
    for pid in top:
        _try_kill(os.kill, pid, number)
    rest = [found for pid in top for found in descendants(pid)]
    ours = {*top, *rest}
    for pid in rest:
        send(pid, number, ours=ours)
    return [*top, *rest]


def descendants(pid: int) -> list[int]:
    """List the processes below one, parents first.

    A process that forks while this is read can be missed; callers loop until nothing is left.
    """
    return [found for found in below(pid) if found is not None]


def below(pid: int) -> Iterator[int | None]:
    """Give the processes below one, from /proc/PID/task/TID/children, and None after each thread that was asked."""
    pending = [pid]
    while pending:
        current = pending.pop()
        try:
            threads = os.listdir(f"/proc/{current}/task")
        except OSError:
            continue
        for thread in threads:
            for found in children(current, thread):
                pending.append(found)
                yield found
            yield None


def children(pid: int, thread: int | str) -> list[int]:
    """List the children of one thread of a process, those that are dead and not reaped included."""
    try:
        with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def bury(pids: Sequence[int], *, own_group: int) -> set[int]:
    """Kill children of this process and everything below them, group by group; return who was alive.

    Nobody has reaped the children since they were listed, so their numbers and groups are theirs, also of the dead:
    one that has ended leads to its group. Callers loop until nothing is left.
    """
    alive = {pid for pid in pids if (known := status(pid)) is not None and known[0]}
    groups = {own_group}
    for pid in pids:
        group = os.getpgid(pid)
        if group not in groups:
            groups.add(group)
            _try_kill(
                os.killpg, group, signal.SIGKILL
            )  # atomic against fork, where killing one by one is not
        _try_kill(os.kill, pid, signal.SIGKILL)
    rest = [found for pid in alive for found in descendants(pid)]
    ours = {*alive, *rest}
    for pid in rest:
        try:
            group = os.getpgid(pid)
        except OSError:
            continue
        if send(pid, signal.SIGKILL, ours=ours):
            alive.add(pid)
            if group not in groups:
                groups.add(group)
                _try_kill(os.killpg, group, signal.SIGKILL)
    return alive


def _try_kill(how: Callable[[int, int], None], target: int, number: int) -> None:
    """Kill what may be killed: an unconfined set-id program may not (EPERM)."""
    try:
        how(target, number)
    except OSError:
        pass


def send(pid: int, number: int, *, ours: set[int]) -> bool:
    """Send a signal to a process that may be gone; return whether it was there, alive and the child of one of `ours`.

    Between the list that a number is from and the signal the process can end, and the number go to a stranger: with
    enough forks it does. So the process is held by a pidfd before it is asked whose child it is.
    """
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        known = status(pid)
        if known is None or not known[0] or known[1] not in ours:
            return False
        signal.pidfd_send_signal(held, number)
    except OSError:
        return False
    finally:
        os.close(held)
    return True
