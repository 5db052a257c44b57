"""Verdict: what the launcher's last word means for a person."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from skillrun.launch.result import Termination, Usage
from skillrun.problem import At, Problem, error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillrun.launch.drive import Outcome
    from skillrun.sandbox.policy import Policy

# A single argument or variable, its NUL included (MAX_ARG_STRLEN, 32 pages of 4 KiB; execve(2)).
MAX_ARGUMENT: Final = 131_072
_REASONS: Final = {
    "timed_out": Termination.TIMED_OUT,
    "cancelled": Termination.CANCELLED,
    "memory_limit": Termination.MEMORY_LIMIT,
    "process_limit": Termination.CANCELLED,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a run ended, as the fields of a Result."""

    termination: Termination
    exit_code: int | None = None
    signal: int | None = None
    error: Problem | None = None
    leftovers: int = 0
    usage: Usage | None = None


def judge(outcome: Outcome, policy: Policy) -> Verdict:
    """Turn an outcome into a verdict."""
    ended = outcome.ended
    if ended is None:
        gone = error(
            "launcher-died",
            "the launcher was killed during the run; the script was ended with it",
            help="run it again; what it had printed is kept",
        )
        return Verdict(Termination.CANCELLED, error=gone)
    if ended["event"] == "failed":
        return Verdict(Termination.FAILED_TO_START, error=explain_failure(ended, policy))
    status = ended["status"]
    reason = ended["reason"]
    exit_code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    usual = Termination.EXITED if exit_code is not None else Termination.SIGNALED
    return Verdict(
        termination=_REASONS.get(reason, usual),
        error=_over_limit(reason, ended, policy),
        exit_code=exit_code,
        signal=signal,
        leftovers=ended["leftovers"],
        usage=Usage(cpu_s=ended["cpu"], peak_rss_bytes=ended["rss"] * 1024),
    )


def _over_limit(reason: str | None, ended: Mapping[str, Any], policy: Policy) -> Problem | None:
    """Say which limit ended a run, with the figure."""
    if reason == "memory_limit":
        used, most = ended["memory"] >> 20, int(policy.limits.memory) >> 20
        message = f"the script and what it started had {used} MiB of memory, and {most} MiB are allowed"
        return error("memory-limit", message, help="ask for more in `limits`, or raise the ceiling")
    if reason == "process_limit":
        message = (
            f"the script had {ended['processes']} processes, and {int(policy.limits.processes)} are allowed"
        )
        return error("process-limit", message, help="ask for more in `limits`, or raise the ceiling")
    return None


def explain_failure(failed: Mapping[str, Any], policy: Policy) -> Problem:
    """Say why a script was not started; nothing of it ran."""
    at = At(path=policy.script)
    if failed.get("changed"):
        return error("changed-before-start", failed["message"], at=at, help="run it again to plan it anew")
    number, program = failed["errno"], policy.argv[0]
    if failed["stage"] != "exec":
        message = f"the sandbox could not be set up (stage `{failed['stage']}`: {failed['message']})"
        advice = failed.get("help") or "`skillrun doctor` shows what this host can do"
        return error("setup-failed", message, at=at, help=advice)
    if number == errno.E2BIG:
        return too_large(policy.argv, policy.environ) or error(
            "arguments-too-large",
            "the arguments and the environment are together larger than this system allows",
        )
    hint = f"make it executable: chmod +x {program}" if policy.interpreter is None else None
    known = {
        errno.ENOENT: error("interpreter-not-found", f"the interpreter `{program}` was not found", at=at),
        errno.ENOEXEC: error("not-executable", f"this system can't execute the format of `{program}`", at=at),
        errno.EACCES: error("not-executable", f"`{program}` may not be executed", at=at, help=hint),
    }
    other = error("start-failed", f"`{program}` could not be started: {failed['message']}", at=at)
    return known.get(number, other)


def too_large(argv: Sequence[str], environ: Sequence[tuple[str, str]]) -> Problem | None:
    """Say which single argument or variable is too large for execve, None when none is."""
    # All of them together are mostly short enough for one, at most four bytes a character.
    if 4 * len("=".join((*argv, *chain.from_iterable(environ), ""))) < MAX_ARGUMENT:
        return None
    sizes = [(f"argument {place}", len(os.fsencode(word)) + 1) for place, word in enumerate(argv)]
    sizes += [(f"variable `{name}`", len(os.fsencode(f"{name}={value}")) + 1) for name, value in environ]
    what, size = max(sizes, key=lambda entry: entry[1])
    if size <= MAX_ARGUMENT:
        return None
    return error(
        "arguments-too-large",
        f"{what} has {size - 1} bytes, and this system passes at most {MAX_ARGUMENT - 1} in one",
        help="pass large input through stdin or a file",
    )
