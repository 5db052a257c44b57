"""Voices: whose request counts for a skill, its own or the operator's (DESIGN 1: both are shown)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillrun.errors import SkillError
from skillrun.permissions.request import Presence, Request, read_request
from skillrun.problem import At, Problem, Severity, error

if TYPE_CHECKING:
    from skillrun.permissions.config import SkillEntry
    from skillrun.permissions.layers import Layers
    from skillrun.skills.model import Skill


@dataclass(frozen=True, slots=True)
class Voice:
    """The request that counts, the skill's own beside it, and the entries that speak about the skill."""

    request: Request
    own: Request
    entries: tuple[SkillEntry, ...]
    warnings: tuple[Problem, ...]


def listen(skill: Skill, layers: Layers, digest: str) -> Voice:
    """Find out what is asked for. SkillError when the skill or its own request has an error.

    An entry's request replaces the skill's own. What is no right stays: the folder a script expects to
    start in and what its arguments mean, unless the entry says otherwise, and its wish for approval always.
    """
    own = read_request(skill)
    wrong = [p for p in (*skill.problems, *own.problems) if p.severity is Severity.ERROR]
    if skill.front is None and not wrong:
        wrong = [
            error("front-matter-missing", f"`{skill.manifest}` could not be read", at=At(skill.manifest))
        ]
    if wrong:
        raise SkillError(*wrong)
    entries, problems = layers.bound_entries(skill, digest)
    spoken = next((entry.request for entry in entries if entry.request is not None), None)
    request = own if spoken is None else _replaced(own, spoken)
    warnings = (*(p for p in request.problems if p.severity is Severity.WARNING), *problems, *layers.problems)
    return Voice(request, own, entries, warnings)


def _replaced(own: Request, spoken: Request) -> Request:
    return replace(
        spoken,
        cwd=own.cwd if spoken.presence("cwd") is Presence.ABSENT else spoken.cwd,
        approval=own.approval or spoken.approval,
        scripts=own.scripts if spoken.presence("scripts") is Presence.ABSENT else spoken.scripts,
        entries=own.entries if spoken.presence("scripts") is Presence.ABSENT else spoken.entries,
    )
