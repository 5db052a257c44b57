"""Denials: what the sandbox seems to have kept from a script that failed, each with what speaks for it.

The sandbox is never blamed for a path that it does not keep, nor for one that the caller could not use either.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.errors import SkillrunError
from skillrun.launch.physical import Walk
from skillrun.launch.result import Denial, Termination
from skillrun.permissions.capabilities import inside
from skillrun.resources import table
from skillrun.sandbox.complete import protected_names
from skillrun.sandbox.policy import Access, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from skillrun.launch.drive import Outcome
    from skillrun.launch.ready import Ready
    from skillrun.launch.result import Result
    from skillrun.launch.verdict import Verdict
    from skillrun.permissions.flags import Flags
    from skillrun.permissions.grant import Grant
    from skillrun.permissions.place import Place
    from skillrun.sandbox.backend import LaunchPlan, Probe
    from skillrun.skills.model import Skill

GUESS: Final = "guess"
KERNEL: Final = "kernel"
NETWORK: Final = "network"
_BY_FLAG: Final = {"read", "write", NETWORK}
MOST: Final = 10
"""Denials told at most: a script may print what looks like thousands."""
_CANDIDATES: Final = 200
_READER_GONE: Final = 13  # SIGPIPE, on every system that has it
_LONGEST_PATH: Final = 4096  # PATH_MAX
_LOOKED_AT: Final = 128 << 10  # characters of stderr, its last ones: a script that fails says why at its end


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something that may have been kept from a script; `operation` is one of `profiles/denials.yaml`, or read."""

    operation: str
    path: Path | None = None
    evidence: str = GUESS


def denials(
    ready: Ready,
    verdict: Verdict,
    outcome: Outcome,
    *,
    told: Sequence[Suspect],
    plan: LaunchPlan,
    probe: Probe,
    grant: Callable[[Skill, str, Place, Flags], Grant],
) -> tuple[Denial, ...]:
    """Find out what was kept from a script that failed: `told` by the kernel, else guessed.

    `grant` decides about it again with other flags.
    """
    if not failed(verdict):
        return ()
    # Without a level nothing was confined, or by a system whose own files this host's probe does not name.
    looked_at = suspects(outcome.stderr.text, ready.policy.cwd) if plan.level is not None else ()
    guessed = confirmed(looked_at, ready.policy, probe)
    known = {
        (one.operation, one.path): one for one in (*guessed, *told)
    }  # the kernel's word stands over a guess
    found = sorted(known.values(), key=lambda one: one.evidence == GUESS)[:MOST]
    return tuple(_judged(one, ready, grant) for one in found)


def _judged(suspect: Suspect, ready: Ready, grant: Callable[[Skill, str, Place, Flags], Grant]) -> Denial:
    """Make a denial, without a fix where no flag can say it: the path is a script's own text, and may be no path to a flag."""
    if suspect.operation in _BY_FLAG:
        with contextlib.suppress(SkillrunError):
            return denial(
                suspect, grant(ready.skill, ready.digest, ready.place, asking(suspect, ready.flags))
            )
    return Denial(suspect.operation, suspect.path, suspect.evidence, None)


def failed(ended: Verdict | Result) -> bool:
    """Whether a script ended badly by itself.

    One that was ended was not stopped by a denial, nor was one whose reader had gone (SIGPIPE).
    """
    if ended.termination is Termination.SIGNALED:
        return ended.signal != _READER_GONE
    return ended.termination is Termination.EXITED and ended.exit_code != 0


def suspects(stderr: str, cwd: Path) -> Iterator[Suspect]:
    """Give what a script's words look like, latest last, by `profiles/denials.yaml`."""
    stderr = stderr[-_LOOKED_AT:]
    for pattern, operation in _patterns():
        for found in pattern.finditer(stderr):
            words = found.groupdict()
            text = words.get("quoted") or words.get("bare")
            if operation == "network":
                yield Suspect(operation)
            elif text and len(text) < _LONGEST_PATH and "\0" not in text:
                yield Suspect(operation, cwd / text)


def confirmed(found: Iterable[Suspect], policy: Policy, probe: Probe) -> tuple[Suspect, ...]:
    """Keep what the sandbox does keep from this run and the caller could do, each once, with its operation."""
    kept: dict[tuple[str, Path | None], Suspect] = {}
    walk = Walk.here()
    for _, suspect in zip(range(_CANDIDATES), found, strict=False):
        if suspect.path is None:
            sure: Suspect | None = None if policy.network else suspect
        else:
            sure = _sure(suspect, walk.to(str(suspect.path)), policy, probe)
        if sure is not None:
            kept.setdefault((sure.operation, sure.path), sure)
        if len(kept) >= MOST:
            break
    return tuple(kept.values())


def denial(suspect: Suspect, allowed: Grant) -> Denial:
    """Make a denial; `allowed` is the grant of the same run with the smallest flag.

    Without a fix where that would not be granted: a secret, a `deny` line, a floor, a protected path.
    """
    fix = None
    if _helps(suspect, allowed):
        fix = f"--{suspect.operation}" + (
            "" if suspect.path is None else f" {shlex.quote(str(suspect.path))}"
        )
    return Denial(suspect.operation, suspect.path, suspect.evidence, fix)


def asking(suspect: Suspect, flags: Flags) -> Flags:
    """Add to the flags of a run the smallest one that would allow what was denied."""
    if suspect.path is None:
        return replace(flags, network=True)
    if suspect.operation == "write":
        return replace(flags, write=(*flags.write, str(suspect.path)))
    return replace(flags, read=(*flags.read, str(suspect.path)))


def _helps(suspect: Suspect, allowed: Grant) -> bool:
    path = suspect.path
    if path is None:
        return allowed.capabilities.network.everything
    if suspect.operation == "read":
        return allowed.allows_read(path)
    covered = (kept.path for kept in protected_names((path,), ()))
    return allowed.allows_write(path) and not any(inside(path, other) for other in covered)


def _sure(suspect: Suspect, physical: Path | None, policy: Policy, probe: Probe) -> Suspect | None:
    """Return a suspect with its physical path and what was denied of it, None where the sandbox allows it.

    Only names are looked up on the disk: the path is a script's own text, and nothing is opened.
    """
    if physical is None:
        return None  # in /proc, for one: what a process finds there is its own, and never what we find
    try:
        there = physical.exists()
    except (OSError, ValueError):
        return None
    reads, writes = permitted(policy, physical, probe)
    told = suspect.operation
    if there and told != "write" and not reads:
        return Suspect("read", physical, suspect.evidence) if os.access(physical, os.R_OK) else None
    # What is really missing may be read and is not there; only where its folder is hidden was nothing made.
    if writes or (told == "missing" and (there or permitted(policy, physical.parent, probe)[0])):
        return None
    target = physical if there else physical.parent
    if not target.exists() or not os.access(target, os.W_OK):
        return None
    return Suspect("write", physical, suspect.evidence)


def permitted(policy: Policy, path: Path, probe: Probe) -> tuple[bool, bool]:
    """Whether a run may read and write a physical path; a grant inside of something that is kept wins, as scratch does."""
    rules = [rule for rule in policy.rules if inside(path, rule.path)]
    kept = [
        one
        for one in policy.kept
        if inside(path, one.path) and not any(one.path in rule.path.parents for rule in rules)
    ]
    if any(not one.readable for one in kept):
        return False, False
    writes = not kept and any(rule.access is Access.WRITE for rule in rules)
    return bool(rules) or any(inside(path, Path(place.path)) for place in probe.system), writes


@functools.cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(row["pattern"]), row["operation"]) for row in table("denials"))
