"""From the fork to the exec: the steps that confine one script, in the order that works.

Every step has a name, and a failure is reported as that name and an errno over a pipe that the exec
closes. Nothing is executed unless every step of the plan succeeded.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import stat

from . import calls, landlock
from .words import parse

try:
    from _sha2 import sha256  # type: ignore[import-not-found] # no stub; hashlib would load OpenSSL
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found] # before Python 3.12
    except ImportError:
        from hashlib import sha256

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

EVENTS_FD = 3
# Written to the report pipe just before the exec. The end of that pipe alone proves nothing: a leader that is
# killed on its way closes it too.
MARK = b"{}\n"
_CHUNK = 1 << 16


class never_returning:  # noqa: N801 - it reads as a statement
    """A block that a forked child must not leave: it would go on as a second launcher, and tidy up like one."""

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, *problem: object) -> None:
        """End the process."""
        os._exit(127)


def prepare() -> None:
    """Take the steps of a confined run that need no plan, so that they can be taken ahead of it.

    Capabilities go first, while the bounding set can still be dropped; what follows needs none.
    """
    lead()
    calls.drop_bounding_set()
    calls.drop_capabilities()
    calls.prctl(calls.PR_SET_NO_NEW_PRIVS, 1)


class Base:
    """The part of a confinement that is the same for many runs, prepared ahead of one; `prepare` came before it."""

    def __init__(self, base: dict[str, Any]) -> None:
        """Make the rule set, and load the filter.

        What is left to do makes no call that the filter refuses: at this level a plan mounts nothing, a session of
        one's own was started, and to be restricted further is always allowed. Loading it takes a quarter of a millisecond.
        """
        self.ruleset = landlock.ruleset(base)
        calls.install_filter(bytes.fromhex(base["filter"]))


def lead(*, blocked: Collection[signal.Signals] = ()) -> None:
    """Start a session of one's own, with the signals as a new program expects them but for those that are `blocked`."""
    os.setsid()
    reset_signals(blocked)


class StepError(Exception):
    """A step failed: its name, and why."""

    def __init__(self, stage: str, problem: BaseException) -> None:
        """Take both."""
        super().__init__(stage)
        self.stage, self.problem = stage, problem


def each(*steps: tuple[str, Callable[[], Any]]) -> list[Any]:
    """Take named steps in their order, and return what they gave. Raises StepError."""
    given = []
    for name, step in steps:
        try:
            given.append(step())
        except BaseException as problem:
            raise StepError(name, problem) from problem
    return given


def become(plan: dict[str, Any], *, descriptors: list[int], report: int, base: Base | None) -> None:
    """Turn this process into the script; never returns.

    `descriptors` are stdin, stdout, stderr and, when asked for, events, then the socket of a traced run; `report`
    is the pipe for a failure; `base` is what was prepared of the confinement, None for a run without any.
    """
    stage = "descriptors"
    try:
        descriptors, telling = split(plan, descriptors)
        each(*_steps(plan, descriptors=descriptors, telling=telling, base=base))
        stage = "close"
        first = len(descriptors)
        os.dup2(report, first, inheritable=False)
        report = first
        calls.close_from(first + 1)
        stage = "exec"
        os.write(report, MARK)
        os.execve(plan["argv"][0], plan["argv"], plan["env"])  # noqa: S606 - starting it is the purpose
    except StepError as failed:
        fail(report, failed.stage, failed.problem)
    except BaseException as problem:  # noqa: BLE001 - whatever it is, the other end must hear of it
        fail(report, stage, problem)
    os._exit(127)


def _steps(
    plan: dict[str, Any], *, descriptors: list[int], telling: int | None, base: Base | None
) -> list[tuple[str, Callable[[], object]]]:
    """List the named steps of a plan between `prepare` and the last close.

    The order matters: the folder is entered before Landlock may forbid it.
    """
    ordered: list[tuple[str, Callable[[], object]]] = [
        ("descriptors", lambda: take(descriptors)),
        ("cwd", lambda: enter(plan["cwd"])),
        ("limits", lambda: limit(plan["rlimits"])),
    ]
    if base is not None:
        traced = bool(plan.get("traced"))
        ordered.append(("landlock", lambda: landlock.restrict(base.ruleset, plan["rules"], traced=traced)))
    ordered.append(("identity", lambda: check_identity(plan["identity"])))
    if telling is not None:
        ordered.append(("trace", lambda: tell(plan, telling)))
    return ordered


def split(plan: dict[str, Any], descriptors: list[int]) -> tuple[list[int], int | None]:
    """Tell the run's own descriptors from the socket of a traced run, which the script never gets."""
    return (descriptors[:-1], descriptors[-1]) if "told" in plan else (descriptors, None)


def tell(plan: dict[str, Any], telling: int) -> None:
    """Have the kernel tell what is asked for from here on, and send the owner where it does; a run goes on without.

    Nothing that confines depends on it: the filter of the plan answers before this one (seccomp(2), precedence).
    """
    with socket.socket(fileno=telling) as owner:
        try:
            listener = calls.install_listener(bytes.fromhex(plan["told"]))
        except OSError as problem:
            owner.send(f"the kernel gives no listener: {problem.strerror}".encode()[:64])
            return
        try:
            socket.send_fds(owner, [b"listener"], [listener])
        finally:
            os.close(listener)


def follow_to_death(launcher: int) -> None:
    """Die with the launcher, also when it died before this was asked for."""
    calls.prctl(calls.PR_SET_PDEATHSIG, signal.SIGKILL)
    # getppid proves nothing (another process may have inherited us); a pidfd is readable once its
    # process is dead, and closes the moment between the clone and the prctl.
    waiter = select.poll()
    waiter.register(launcher, select.POLLIN)
    if waiter.poll(0):
        os._exit(1)


def take(descriptors: list[int]) -> None:
    """Make the run's pipes descriptors 0, 1, 2 (and 3)."""
    # The numbers received are all above 3: the launcher keeps its own low ones busy.
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number, inheritable=True)


def enter(cwd: list[Any]) -> None:
    """Change to a folder, after checking that it is the one that was planned."""
    path, device, inode = cwd
    descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if (device, inode) not in {landlock.ANY, (found.st_dev, found.st_ino)}:
        raise landlock.ChangedError(f"{path} was replaced after the run was planned")
    os.fchdir(descriptor)
    os.close(descriptor)


def limit(rlimits: list[list[int]]) -> None:
    """Set resource limits, hard and soft alike, so that the script can't raise them."""
    for number, value in rlimits:
        _, hard = resource.getrlimit(number)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (bound, bound))


def reset_signals(blocked: Collection[signal.Signals] = ()) -> None:
    """Undo what Python and the launcher changed: an ignored signal stays ignored over an exec."""
    for number in (
        signal.SIGPIPE,
        signal.SIGXFSZ,
        signal.SIGCHLD,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGTERM,
        signal.SIGQUIT,
    ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def check_identity(files: list[list[Any]]) -> None:
    """Check that the files about to be started are the ones that were planned.

    Each is [path, device, inode, sha256 or None]. An interpreter is compared by inode only: it is
    large, and whoever can write it needs no script.
    """
    for path, device, inode, digest in files:
        access = os.O_PATH if digest is None else os.O_RDONLY | os.O_NONBLOCK
        descriptor = os.open(path, access | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if (found.st_dev, found.st_ino) != (device, inode):
                raise landlock.ChangedError(f"{path} was replaced after the run was planned")
            if digest is not None and _digest(descriptor) != digest:
                raise landlock.ChangedError(f"{path} was changed after the run was planned")
        finally:
            os.close(descriptor)


def _digest(descriptor: int) -> str:
    """Return the hexadecimal sha256 of what is left to read."""
    state = sha256()
    while chunk := os.read(descriptor, _CHUNK):
        state.update(chunk)
    return str(state.hexdigest())


def read_plan(descriptor: int) -> dict[str, Any]:
    """Read a plan from the memory file it was sent in, and close it."""
    try:
        found = os.fstat(descriptor)
        # Reading from anything else, such as a socket, could wait for ever.
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("a plan comes in a file")
        plan = parse(_whole(descriptor, found.st_size))
    finally:
        os.close(descriptor)
    if not isinstance(plan, dict):
        raise TypeError("a plan is a map")
    return plan


def _whole(descriptor: int, size: int) -> bytes:
    """Read a file from where it stands to its end; one call, unless it is longer than one gives."""
    words = os.read(descriptor, size + 1)
    while chunk := os.read(descriptor, size + 1):
        words += chunk
    return words


def fail(report: int, stage: str, problem: BaseException, **facts: object) -> None:
    """Write a failure to the report pipe: the stage, the errno if there is one, the words, and what else is known."""
    message = {
        "stage": stage,
        "errno": getattr(problem, "errno", None),
        "message": str(problem)[:500],
        **facts,
    }
    if isinstance(problem, landlock.ChangedError):
        message["changed"] = True
    try:
        os.write(report, json.dumps(message).encode())
    except OSError:
        pass
