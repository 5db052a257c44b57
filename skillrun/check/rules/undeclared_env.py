"""a variable that is read and not asked for.

A script reads an environment variable that the request's `env` does not list.

**Why it matters.** A run gets no variable but those that are asked for and allowed, so here the script sees
nothing. Everywhere else it gets whatever the session has, keys included.

**How sure.** A literal name in Python and Node, and `${NAME:?}` in a shell, are high; other names in a shell are
taken only where they look like a secret or have a default, and are medium.

**What to do.** List it: `metadata: {skillrun: {env: [NAME]}}`. Keys of model providers are never passed.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from skillrun.check.rule import Rule
from skillrun.check.rules._covered import weight
from skillrun.check.static.use import Kind
from skillrun.permissions.environment import always_passed, refusal
from skillrun.permissions.grant import Capability
from skillrun.problem import Severity
from skillrun.resources import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def asks_for(name: str) -> bool:
    """Whether a variable is one that a script would have to ask for."""
    return name not in always_passed() and name not in _harmless() and not name.startswith("SKILLRUN_")


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each variable once a skill."""
    asked = {str(one.value) for one in subject.request.of(Capability.ENV)}
    seen: set[str] = set()
    for used in subject.uses(Kind.ENV):
        name = used.use.value
        if name is None or name in asked or name in seen or not asks_for(name):
            continue
        seen.add(name)
        reason = refusal(name)
        advice = (
            f"nobody gets it: {reason}" if reason else f"list it under `metadata.skillrun.env`: `[{name}]`"
        )
        yield RULE.finding(
            subject,
            f"`{used.script.name}` reads the variable `{name}` (`{used.use.what}`), and the skill does not ask for it",
            key=(used.script.name, name),
            at=used.at,
            confidence=used.use.confidence,
            severity=weight(subject),
            help=advice,
        )


@functools.cache
def _harmless() -> frozenset[str]:
    return frozenset(table("check/variables")["names"])


RULE = Rule("undeclared-env", Severity.WARNING, __name__, one=find)
