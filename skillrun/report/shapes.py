"""Shapes: skills, requests and grants as the JSON of DESIGN 13. Absent facts are None."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from skillrun.permissions.script_entries import accesses
from skillrun.problem import Severity
from skillrun.report.document import name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skillrun.permissions.explain import Answer
    from skillrun.permissions.grant import Grant, Item, Narrowed, Refused, Value
    from skillrun.permissions.request import Request
    from skillrun.problem import At, Problem
    from skillrun.report.listing import Listing, Row
    from skillrun.sandbox.guarantee import Guarantees
    from skillrun.sandbox.policy import Policy
    from skillrun.skills.model import Script

Shape = dict[str, Any]


def schema(kind: str) -> Shape:
    """Return the member that names a shape and its version."""
    return {"schema": f"skillrun.{kind}/1"}


def problem(found: Problem) -> Shape:
    """Shape a problem; `path`, `line` and `column` are null where it has no place in a file."""
    at = found.at
    return {
        "rule": found.rule,
        "severity": found.severity.value,
        "message": found.message,
        "help": found.help,
        "path": name(at.path) if at is not None and at.path is not None else None,
        "line": at.line if at is not None else None,
        "column": at.column if at is not None else None,
    }


def place(at: At | None) -> Shape | None:
    """Shape where a value came from: a spot in a file, a preset, or a flag."""
    if at is None:
        return None
    if at.path is not None:
        return {"path": name(at.path), "line": at.line, "column": at.column}
    return {"preset": at.preset} if at.preset is not None else {"flag": at.flag}


def item(granted: Item) -> Shape:
    """Shape one thing that was granted, with how it was asked for and the line that allows it."""
    return {
        "capability": granted.capability.value,
        "value": _value(granted.value),
        "at": place(granted.at),
        "asked": _value(granted.asked),
        "limit_at": place(granted.limit_at),
    }


def grant(decided: Grant) -> Shape:
    """Shape a grant: what was granted, and both kinds of cuts with both places."""
    return {
        "granted": [item(one) for one in decided.granted],
        "narrowed": [
            {**_cut(one), "given": [_value(value) for value in one.given]} for one in decided.narrowed
        ],
        "refused": [{**_cut(one), "reason": one.reason} for one in decided.refused],
    }


def guarantees(promised: Guarantees | None) -> dict[str, str] | None:
    """Shape the guarantees, None where nothing was promised."""
    return None if promised is None else {key: state.value for key, state in promised.items()}


def request(asked: Request) -> list[Shape]:
    """Shape what a skill asks for, in its own spelling; an access by argument is the parameter that gives it."""
    made = [
        {"capability": one.capability.value, "value": _value(one.value), "at": place(one.at)}
        for one in asked.asked
    ]
    made += [
        {
            "capability": f"fs_{one.access}",
            "value": None,
            "at": place(one.at),
            "argument": f"{script} {one.name}",
        }
        for script, one in accesses(asked.entries)
    ]
    return made


def skill(row: Row) -> Shape:
    """Shape a skill as it is listed."""
    return {
        "key": row.skill.key,
        "name": row.skill.name,
        "description": row.skill.description,
        "path": name(row.skill.found),
        "valid": row.valid,
        "shadowed_by": None if row.shadowed_by is None else name(row.shadowed_by),
        "scripts": [_script(script) for script in row.skill.scripts],
        "request": request(row.request) if row.valid else None,
        "problems": [problem(found) for found in row.problems],
    }


def listing(listed: Listing) -> Shape:
    """Shape a list of skills."""
    return {
        **schema("list"),
        "roots": [{"path": name(found.root), "status": found.status.value} for found in listed.roots],
        "skills": [skill(row) for row in listed.rows],
        "problems": [problem(found) for found in listed.problems],
    }


def policy(made: Policy) -> Shape:
    """Shape a policy. The scratch folder has no path before a run: it is made for each."""
    return {
        "cwd": name(made.cwd),
        "paths": [
            {
                "path": None if rule.path == made.scratch else name(rule.path),
                "access": rule.access.value,
                "reason": rule.reason,
            }
            for rule in made.rules
        ],
        "kept": [
            {"path": name(kept.path), "readable": kept.readable, "reason": kept.reason} for kept in made.kept
        ],
        "network": made.network,
        "timeout_s": finite(made.timeout),
        "limits": {
            key: finite(getattr(made.limits, key)) for key in ("memory", "processes", "file_size", "output")
        },
        "environment": [key for key, _ in made.environ],
        "require": made.require.value,
        "unconfined": None if made.unconfined is None else made.unconfined.value,
    }


def explanation(answers: Iterable[Answer]) -> Shape:
    """Shape the answers of `explain`."""
    return {
        **schema("explain"),
        "answers": [
            {
                "target": name(answer.target),
                "resolved": None if answer.resolved is None else name(answer.resolved),
                "access": answer.access.value,
                "decision": answer.decision.value,
                "rule": answer.rule,
                "reason": answer.reason,
                "at": [place(at) for at in answer.at],
            }
            for answer in answers
        ],
    }


def finite(number: float) -> float | None:
    """Return a number, None where it says that there is no bound: JSON has no Infinity."""
    return number if math.isfinite(number) else None


def _cut(cut: Narrowed | Refused) -> Shape:
    return {
        "capability": cut.capability.value,
        "asked": _value(cut.asked),
        "asked_at": place(cut.asked_at),
        "limit_at": place(cut.limit_at),
    }


def _script(script: Script) -> Shape:
    command = script.command
    broken = any(found.severity is Severity.ERROR for found in script.problems)
    return {
        "name": name(script.name),
        "path": name(script.path),
        "interpreter": command.program or None if command is not None else None,
        "tool": script.tool,
        "runnable": command is not None and not broken,
    }


def _value(value: Value) -> Value:
    return name(value) if isinstance(value, str) else value


def path_or_none(path: Path | None) -> str | None:
    """Return a path's text, None where there is none."""
    return None if path is None else name(path)
