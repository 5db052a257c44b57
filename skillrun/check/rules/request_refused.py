"""a permission that the ceiling refuses.

The skill asks for something of which nothing is left once the ceiling has been applied: a path outside every
root, a network that is not allowed, a variable that is not listed.

**Why it matters.** The skill runs without it (`--strict` makes it stop), so either it does not work here, or it
does not need what it asks for. Asking for more than an organisation allows is also what a skill does that is out
for something.

**Example.** `fs_read: ["/etc"]` under a ceiling with `fs_read: ["${workspace}"]`.

**What to do.** Take the line out of the skill's SKILL.md. If the skill is right, widen the ceiling, which is the
operator's decision and not the skill's.
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
    """Give each refused request; trust and variables that nobody gets have rules of their own."""
    for cut in subject.grant.refused if subject.grant is not None else ():
        if cut.capability is Capability.TRUST or (
            cut.capability is Capability.ENV and refusal(str(cut.asked))
        ):
            continue
        reason = cut.reason.replace("/${", "${")
        yield RULE.finding(
            subject,
            f"asks for `{cut.capability.value}: {_value(cut.asked)}`, which the ceiling refuses: {reason}",
            key=(cut.capability.value, str(cut.asked)),
            at=cut.asked_at,
            related=(cut.limit_at,),
            help=f"take it out of the skill, or widen the ceiling at {cut.limit_at}",
        )


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


RULE = Rule("request-refused", Severity.ERROR, __name__, one=find)
