"""Answers: what `explain` asks the library about one run, the grant first, then what the policy adds and keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.permissions.capabilities import inside
from skillrun.permissions.explain import Access, Decision, explain_endpoint, explain_path
from skillrun.sandbox.linux.level1 import system_rules
from skillrun.sandbox.seatbelt.backend import Seatbelt
from skillrun.sandbox.seatbelt.read_back import read_back

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillrun.launch.ready import Preview
    from skillrun.permissions.explain import Answer
    from skillrun.sandbox.seatbelt.evaluate import Evaluator

_SYSTEM: Final = "a part of the system that every run may read"
_DEVICE: Final = "a device that every run may use"


def answer(preview: Preview, access: Access, targets: Iterable[str]) -> tuple[Answer, ...]:
    """Answer for each target: an absolute path, or a host for CONNECT."""
    if access is Access.CONNECT:
        return tuple(explain_endpoint(preview.ready.grant, target) for target in targets)
    own = _own(preview, access)
    answers = tuple(_path(preview, target, access, own) for target in targets)
    backend = preview.chosen.backend
    if not isinstance(backend, Seatbelt) or preview.ready.grant.unconfined is not None:
        return answers
    profile = read_back(preview.ready.policy, dict(preview.ready.grant.missing))
    return tuple(_by_profile(profile, found, access) for found in answers)


def _by_profile(profile: Evaluator, found: Answer, access: Access) -> Answer:
    """Let the profile that a run would get have the last word: what it opens for every run, and what it keeps."""
    if found.resolved is None:
        return found
    operation = "file-read-data" if access is Access.READ else "file-write-data"
    given = {"vnode-type": "CHARACTER-DEVICE"} if found.resolved.startswith("/dev/") else {}
    decision = profile.decide(operation, found.resolved, given)
    if decision.allowed is (found.decision is Decision.ALLOWED):
        return found
    reason = "every run may, by its Seatbelt profile" if decision.allowed else "the Seatbelt profile keeps it"
    word = Decision.ALLOWED if decision.allowed else Decision.DENIED
    return replace(found, decision=word, rule="policy", reason=reason, at=())


def _path(preview: Preview, target: str, access: Access, own: dict[Path, str]) -> Answer:
    ready = preview.ready
    found = explain_path(ready.grant, ready.place, target, access, policy=own)
    if ready.grant.unconfined is not None or found.resolved is None:
        return found
    path = Path(found.resolved)
    if access is Access.WRITE and found.decision is Decision.DENIED and own.get(path) == _DEVICE:
        return replace(found, decision=Decision.ALLOWED, rule="policy", reason=_DEVICE, at=())
    if found.decision is not Decision.ALLOWED or inside(path, ready.place.scratch):
        return found
    for kept in ready.policy.kept:
        if inside(path, kept.path) and (access is Access.WRITE or not kept.readable):
            return replace(
                found,
                decision=Decision.DENIED,
                rule="protected",
                reason=f"`{kept.path}`: {kept.reason}",
                at=(),
            )
    return found


def _own(preview: Preview, access: Access) -> dict[Path, str]:
    """Name what a run may use without asking, each with its reason."""
    ready, probe = preview.ready, preview.chosen.probe
    granted = {*ready.grant.capabilities.fs_read, *ready.grant.capabilities.fs_write}
    own = {rule.path: rule.reason for rule in ready.policy.rules if rule.path not in granted}
    for path, _ in system_rules(probe, network=ready.policy.network):
        own.setdefault(Path(path), _DEVICE if path.startswith("/dev/") else _SYSTEM)
    return {path: why for path, why in own.items() if access is Access.READ or why == _DEVICE}
