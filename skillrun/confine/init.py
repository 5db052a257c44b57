"""The init of a world: starts the script, waits for its end, ends what is left, and tells the status.

The script must not be process 1 itself: signals without a handler do not reach a namespace's init, so
its own abort() would come out as something else (pid_namespaces(7)).
"""

from __future__ import annotations

import json
import os
import signal

from . import calls, child, landlock, supervise, world

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_BY_KILL = 0  # SI_USER: a word that was made up by rt_sigqueueinfo(2) has another code
# Waited for, not handled: so it is known who sent one. An init is cloned with them blocked, since what comes with its
# default, or ignored, is nothing to an init (pid_namespaces(7)): a request that comes before the script is not lost.
AWAITED = frozenset({signal.SIGCHLD, signal.SIGTERM})
_DEFAULTED = [n for n in signal.valid_signals() if n not in {signal.SIGKILL, signal.SIGSTOP}]


def rule_over(
    plan: dict[str, Any], *, descriptors: list[int], report: int, base: dict[str, Any], root: world.World
) -> None:
    """Furnish the root, confine this process, run the script below it, and report; never returns."""
    stage = "mounts"
    try:
        descriptors, telling = child.split(plan, descriptors)
        for name, step in _steps(plan, descriptors=descriptors, telling=telling, base=base, root=root):
            stage = name
            step()
        stage = "close"
        first = len(descriptors)
        os.dup2(report, first, inheritable=False)
        report = first
        calls.close_from(first + 1)
        stage = "exec"
        leader = os.posix_spawn(
            plan["argv"][0], plan["argv"], plan["env"], setsid=True, setsigdef=_DEFAULTED, setsigmask=[]
        )
        os.write(report, json.dumps({"proc": root.fresh_proc}).encode() + b"\n")
        for number in range(first):
            os.close(number)  # else the pipes would never reach their end
        os.write(report, json.dumps(_wait(leader)).encode())
    except BaseException as problem:  # noqa: BLE001 - whatever it is, the other end must hear of it
        child.fail(report, stage, problem)
    os._exit(0)


def _steps(
    plan: dict[str, Any],
    *,
    descriptors: list[int],
    telling: int | None,
    base: dict[str, Any],
    root: world.World,
) -> list[tuple[str, Callable[[], object]]]:
    """List the named steps between the plan's coming and the last close, in the order that works."""
    program = bytes.fromhex(base["filter"])

    def restrict() -> None:
        made = landlock.ruleset({"masks": base["masks"], "system": root.system_rules(base)})
        landlock.restrict(made, plan["rules"], traced=bool(plan.get("traced")))

    return [
        ("descriptors", lambda: child.take(descriptors)),
        ("ids", lambda: world.bound_ids(plan["ids"])),  # while /proc of outside is still there to be written
        ("mounts", lambda: root.furnish(plan)),
        ("cwd", lambda: child.enter(plan["cwd"])),
        ("limits", lambda: child.limit(plan["rlimits"])),
        ("capabilities", calls.drop_capabilities),
        ("no_new_privs", lambda: calls.prctl(calls.PR_SET_NO_NEW_PRIVS, 1)),
        ("landlock", restrict),
        ("identity", lambda: child.check_identity(plan["identity"])),
        *([] if telling is None else [("trace", lambda: child.tell(plan, telling))]),
        ("seccomp", lambda: calls.install_filter(program)),
        ("hide", world.hide),
    ]


def _wait(leader: int) -> dict[str, Any]:
    """Reap until the leader ends, passing on a request to end; then kill and count whoever else is left here."""
    while True:
        _heed(signal.sigtimedwait({signal.SIGTERM}, 0))
        for _ in range(supervise.BATCH):  # then there may be word from outside
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                _heed(signal.sigwaitinfo(AWAITED))
            elif pid == leader:
                return {
                    **_end_rest(),
                    "status": status,
                    "cpu": usage.ru_utime + usage.ru_stime,
                    "rss": usage.ru_maxrss,
                }


def _heed(word: signal.struct_siginfo | None) -> None:
    """Pass on a request to end that comes by kill(2) from outside of this namespace, where nobody has a number."""
    if word is not None and (word.si_signo, word.si_pid, word.si_code) == (signal.SIGTERM, 0, _BY_KILL):
        _ask_all()


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
