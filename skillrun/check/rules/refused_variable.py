"""a variable that nobody is given.

The skill asks for an environment variable that no run ever gets: one that a loader or an interpreter obeys, one
that redirects traffic, a way into another session, or the key of a model provider (`profiles/env.yaml`).

**Why it matters.** `LD_PRELOAD` runs code before the script's first line; `ANTHROPIC_API_KEY` is the agent's own
account. A skill that asks for such a thing either doesn't know or hopes that you don't.

**What to do.** Take it out. A service's own key has a name of its own: ask for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.rule import Rule
from skillrun.permissions.environment import refusal
from skillrun.permissions.grant import Capability
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each such name in the request."""
    for asked in subject.request.of(Capability.ENV):
        reason = refusal(str(asked.value))
        if reason is not None:
            yield RULE.finding(
                subject,
                f"asks for the variable `{asked.value}`, which is never passed: {reason}",
                key=("env", str(asked.value)),
                at=asked.at,
                help="take it out of `env`",
            )


RULE = Rule("refused-variable", Severity.ERROR, __name__, one=find)
