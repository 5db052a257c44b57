"""`trust: core` that nobody has listed.

The skill asks to run without confinement, and the operator's file does not list it under `trusted` with its
digest.

**Why it matters.** `trust: core` is only a request; this skill runs confined like any other. A skill that asks
for it without being listed expects to be believed.

**What to do.** Take the line out. If this version must run unconfined, the operator lists it under `trusted`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.rule import Rule
from skillrun.permissions.grant import Capability
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give the refused trust."""
    for cut in subject.grant.refused if subject.grant is not None else ():
        if cut.capability is Capability.TRUST:
            yield RULE.finding(
                subject,
                f"asks for `trust: core`: {cut.reason}",
                key=("trust", "core"),
                at=cut.asked_at,
                help="take it out, or have the operator list this version under `trusted`",
            )


RULE = Rule("unlisted-trust", Severity.ERROR, __name__, one=find)
