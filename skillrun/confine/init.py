"""The init of a world: starts the script, waits for its end, ends what is left, and tells the status.

The script must not be process 1 itself: signals without a handler do not reach a namespace's init, so
its own abort() would come out as something else (pid_namespaces(7)).
"""

from __future__ import annotations

import fcntl
import json
import os
import signal

from . import calls, child, landlock, supervise, world

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from typing import Any

_BY_KILL = 0  # SI_USER: a word that was made up by rt_sigqueueinfo(2) has another code
# Waited for, not handled: so it is known who sent one. An init is cloned with them blocked, since what comes with its
# default, or ignored, is nothing to an init (pid_namespaces(7)): a request that comes before the script is not lost.
AWAITED = frozenset({signal.SIGCHLD, signal.SIGTERM})
_DEFAULTED = [n for n in signal.valid_signals() if n not in {signal.SIGKILL, signal.SIGSTOP}]


def settle(frame: dict[str, Any], *, base: dict[str, Any], root: world.World, traced: bool) -> None:
    """Furnish the root and confine this process, all that needs a frame and no plan. Raises StepError."""
    program = bytes.fromhex(base["filter"])

    def restrict() -> None:
        made = landlock.ruleset({"masks": base["masks"], "system": root.system_rules(base)})
        landlock.restrict(made, frame["rules"], traced=traced)

    child.each(
        ("ids", lambda: world.bound_ids(frame["ids"])),  # while /proc of outside is still there to be written
        ("mounts", lambda: root.furnish(frame)),
        ("cwd", lambda: child.enter(frame["cwd"])),
        ("capabilities", calls.drop_capabilities),
        ("no_new_privs", lambda: calls.prctl(calls.PR_SET_NO_NEW_PRIVS, 1)),
        ("landlock", restrict),
        ("seccomp", lambda: calls.install_filter(program)),
        ("hide", world.hide),
    )


def rule_over(plan: dict[str, Any], *, descriptors: list[int], report: int, root: world.World) -> None:
    """Run the script below this process, which is settled, and report; never returns.

    The first descriptor is a pipe to the owner: by it that hears of an end that nobody asked for, once nothing but this
    process is left, and can look at what was left while the kernel takes this process down.
    """
    stage = "descriptors"
    try:
        words, *descriptors = descriptors
        descriptors, telling = child.split(plan, descriptors)
        child.each(
            ("descriptors", lambda: child.take(descriptors)),
            ("limits", lambda: child.limit(plan["rlimits"])),
            ("identity", lambda: child.check_identity(plan["identity"])),
            *([] if telling is None else [("trace", lambda: child.tell(plan, telling))]),
        )
        stage = "close"
        first = len(descriptors)
        held = fcntl.fcntl(words, fcntl.F_DUPFD_CLOEXEC, first + 2)  # where nothing is moved to
        os.dup2(report, first, inheritable=False)
        os.dup2(held, first + 1, inheritable=False)
        report, words = first, first + 1
        calls.close_from(first + 2)
        stage = "exec"
        leader = os.posix_spawn(
            plan["argv"][0], plan["argv"], plan["env"], setsid=True, setsigdef=_DEFAULTED, setsigmask=[]
        )
        os.write(report, b'{"proc": %s}\n' % (b"true" if root.fresh_proc else b"false"))
        for number in range(first):
            os.close(number)  # else the pipes would never reach their end
        ended, asked = _wait(leader)
        said = json.dumps({**ended, "proc": root.fresh_proc}).encode()
        os.write(report, said)
        if not asked:
            # The owner waits for the end of this pipe. For what is written to one it would be woken on our processor, as
            # by a writer that is about to wait (WF_SYNC in kernel/sched/fair.c), and come after our exit there.
            os.write(words, b'{"event": "over", "reason": null, ' + said[1:])
            os.close(words)
    except child.StepError as failed:
        child.fail(report, failed.stage, failed.problem)
    except BaseException as problem:  # noqa: BLE001 - whatever it is, the other end must hear of it
        # A world in which only the program is missing was built, and says what it is.
        child.fail(report, stage, problem, proc=root.fresh_proc)
    os._exit(0)


def _wait(leader: int) -> tuple[dict[str, Any], bool]:
    """Reap until the leader ends, passing on a request to end; then kill and count whoever else is left here.

    Returns how it ended, and whether that was asked for.
    """
    asked = False
    while True:
        asked |= _heed(signal.sigtimedwait({signal.SIGTERM}, 0))
        for _ in range(supervise.BATCH):  # then there may be word from outside
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                asked |= _heed(signal.sigwaitinfo(AWAITED))
            elif pid == leader:
                used = {"cpu": usage.ru_utime + usage.ru_stime, "rss": usage.ru_maxrss}
                return {**_end_rest(), "status": status, **used}, asked


def _heed(word: signal.struct_siginfo | None) -> bool:
    """Pass on a request to end that comes by kill(2) from outside of this namespace, where nobody has a number."""
    asked = word is not None and (word.si_signo, word.si_pid, word.si_code) == (signal.SIGTERM, 0, _BY_KILL)
    if asked:
        _ask_all()
    return asked


def _ask_all() -> None:
    """Ask every process of this namespace to end; one that is stopped hears it once it is continued."""
    for number in (signal.SIGTERM, signal.SIGCONT):
        try:
            os.kill(-1, number)
        except ProcessLookupError:
            return


def _end_rest() -> dict[str, Any]:
    """Kill whoever is left in this namespace, and return how many there were."""
    leftovers = 0
    try:
        os.kill(-1, signal.SIGKILL)
        while True:
            _, end = os.waitpid(-1, 0)
            leftovers += os.WIFSIGNALED(end) and os.WTERMSIG(end) == signal.SIGKILL
    except (ProcessLookupError, ChildProcessError):
        pass
    return {"leftovers": leftovers}
