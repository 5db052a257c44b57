"""Explain: why one path or endpoint is allowed or not, from the very grant that a run would get (law 6)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.permissions.capabilities import Endpoint, Network, inside
from skillrun.permissions.grant import Capability, Cwd, Item
from skillrun.permissions.resolve import Resolver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillrun.permissions.grant import Grant, Narrowed, Refused
    from skillrun.permissions.place import Place
    from skillrun.problem import At


class Access(enum.Enum):
    """What is asked about."""

    READ = "read"
    WRITE = "write"
    CONNECT = "connect"


class Decision(enum.Enum):
    """The answer."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNKNOWN = "unknown"


_KINDS: Final = {
    # Writing includes reading, so what was asked for writing speaks for reading too.
    Access.READ: frozenset({Capability.FS_READ, Capability.FS_WRITE}),
    Access.WRITE: frozenset({Capability.FS_WRITE}),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer with the rule that makes it. `at` are the lines behind it, the one that asked first."""

    target: str
    resolved: str | None
    access: Access
    decision: Decision
    rule: str
    reason: str
    at: tuple[At, ...] = ()


def explain_path(
    grant: Grant, place: Place, target: str, access: Access, *, policy: Mapping[Path, str] | None = None
) -> Answer:
    """Say whether a run with this grant could read or write a path, and what decides it.

    `target` is relative to the folder the script runs in. `policy` are physical paths that a run may read
    by itself (interpreter, system), each with its reason; without it they are unknown to a grant.
    """
    cwd = place.skill if grant.cwd is Cwd.SKILL else place.workspace
    resolved = Resolver().follow(target if target.startswith("/") else f"{cwd}/{target}")
    verdict: _Verdict | None
    if grant.unconfined is not None:
        verdict = _unconfined(grant)
    elif resolved.fault is not None:
        verdict = _Verdict(Decision.DENIED, "leads-nowhere", resolved.fault)
    else:
        verdict = _path(grant, place, resolved.path, access) or _by_policy(
            resolved.path, access, policy or {}
        )
    verdict = verdict or _cut(grant, resolved.path, access)
    return _answer(verdict, target, str(resolved.path), access)


def explain_endpoint(grant: Grant, target: str) -> Answer:
    """Say whether a run with this grant could connect to `host[:port]`, and what decides it."""
    try:
        endpoint = Endpoint.parse(target)
    except ValueError as wrong:
        verdict = _Verdict(Decision.UNKNOWN, "no-host", str(wrong))
        return _answer(verdict, target, None, Access.CONNECT)
    if grant.unconfined is not None:
        verdict = _unconfined(grant)
    else:
        asked = Network(endpoints=frozenset({endpoint}))
        items = [item for item in grant.granted if item.capability is Capability.NETWORK]
        if asked <= grant.capabilities.network:
            covering = [item for item in items if asked <= _network(item)]
            narrowed = [n for n in grant.narrowed if n.capability is Capability.NETWORK]
            verdict = _Verdict(Decision.ALLOWED, "granted", _GRANTED, _places(covering or narrowed))
        else:
            every: tuple[Narrowed | Refused, ...] = (*grant.narrowed, *grant.refused)
            cuts = [cut for cut in every if cut.capability is Capability.NETWORK]
            verdict = _Verdict(Decision.DENIED, "not-asked", "nothing asks for it")
            if cuts:
                reason = getattr(cuts[0], "reason", "the ceiling allows less than was asked for")
                verdict = _Verdict(Decision.DENIED, "ceiling", reason, _places(cuts))
    return _answer(verdict, target, str(endpoint), Access.CONNECT)


_GRANTED: Final = "it was asked for, and the ceiling allows it"


@dataclass(frozen=True, slots=True)
class _Verdict:
    decision: Decision
    rule: str
    reason: str
    at: tuple[At, ...] = ()


def _answer(verdict: _Verdict, target: str, resolved: str | None, access: Access) -> Answer:
    return Answer(target, resolved, access, verdict.decision, verdict.rule, verdict.reason, verdict.at)


def _unconfined(grant: Grant) -> _Verdict:
    assert grant.unconfined is not None  # noqa: S101 - the callers looked
    trust = [item for item in grant.granted if item.capability is Capability.TRUST]
    reason = f"the run is not confined: {grant.unconfined.value}"
    return _Verdict(Decision.ALLOWED, "unconfined", reason, _places(trust))


def _path(grant: Grant, place: Place, path: Path, access: Access) -> _Verdict | None:
    if inside(path, place.scratch):
        return _Verdict(Decision.ALLOWED, "scratch", "it lies in the run's own scratch folder")
    denial = grant.denial(path)
    if denial is not None:
        return _Verdict(Decision.DENIED, "deny", f"`{denial.path}` is denied: {denial.reason}", (denial.at,))
    if inside(path, place.skill):
        if access is Access.READ:
            return _Verdict(Decision.ALLOWED, "skill-folder", "a skill may read its own folder")
        return _Verdict(Decision.DENIED, "skill-folder", "a skill may never write to its own folder")
    rights = grant.capabilities
    if rights.allows_read(path) if access is Access.READ else rights.allows_write(path):
        return _Verdict(Decision.ALLOWED, "granted", _GRANTED, _sources(grant, path, access))
    return None


def _by_policy(path: Path, access: Access, policy: Mapping[Path, str]) -> _Verdict | None:
    root = next((root for root in policy if access is Access.READ and inside(path, root)), None)
    return None if root is None else _Verdict(Decision.ALLOWED, "policy", policy[root])


def _cut(grant: Grant, path: Path, access: Access) -> _Verdict:
    """Find the cut that a path was lost in: the refusal or narrowing whose asked path covers it."""
    kinds = _KINDS[access]
    for refused in grant.refused:
        if refused.capability in kinds and refused.resolved is not None and inside(path, refused.resolved):
            return _Verdict(Decision.DENIED, "ceiling", refused.reason, _places([refused]))
    for narrowed in grant.narrowed:
        if narrowed.capability in kinds and narrowed.resolved is not None and inside(path, narrowed.resolved):
            given = ", ".join(f"`{value}`" for value in narrowed.given)
            reason = f"`{narrowed.asked}` was asked for, and the ceiling leaves {given} of it"
            return _Verdict(Decision.DENIED, "ceiling", reason, _places([narrowed]))
    return _Verdict(Decision.DENIED, "not-asked", "nothing asks for it")


def _sources(grant: Grant, path: Path, access: Access) -> tuple[At, ...]:
    kinds = _KINDS[access]
    items = [i for i in grant.granted if i.capability in kinds and inside(path, Path(str(i.value)))]
    cuts = [
        n
        for n in grant.narrowed
        if n.capability in kinds and any(inside(path, Path(str(v))) for v in n.given)
    ]
    return _places([*items, *cuts])


def _places(sources: Sequence[Item | Narrowed | Refused]) -> tuple[At, ...]:
    found: list[At] = []
    for source in sources:
        found.append(source.at if isinstance(source, Item) else source.asked_at)
        if source.limit_at is not None:
            found.append(source.limit_at)
    return tuple(dict.fromkeys(found))


def _network(item: Item) -> Network:
    if item.value is True:
        return Network(everything=True)
    return Network(endpoints=frozenset({Endpoint.parse(str(item.value))}))
