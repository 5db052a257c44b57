"""a permission that is broader than the ceiling.

The skill asks for more than the ceiling allows and gets the part that lies inside: `/` becomes the workspace,
600 seconds become 60.

**Why it matters.** The skill runs with less than it says it needs. A request that is broader than what is
allowed also hides what the skill really uses.

**Example.** `timeout: 600` under a ceiling with `timeout: 60`.

**What to do.** Ask for what is used. If the skill is right, the operator widens the ceiling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.project import written
from skillrun.check.rule import Rule
from skillrun.permissions.grant import Capability
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject

_PATHS = frozenset({Capability.FS_READ, Capability.FS_WRITE})


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each request of which a part is left."""
    for cut in subject.grant.narrowed if subject.grant is not None else ():
        given = ", ".join(
            f"`{written(str(value)) if cut.capability in _PATHS else value}`" for value in cut.given
        )
        asked = str(cut.asked).lower() if isinstance(cut.asked, bool) else cut.asked
        yield RULE.finding(
            subject,
            f"asks for `{cut.capability.value}: {asked}` and gets {given or 'nothing'}",
            key=(cut.capability.value, str(cut.asked)),
            at=cut.asked_at,
            related=(cut.limit_at,),
            help=f"ask for what is used; the limit is {cut.limit_at}",
        )


RULE = Rule("request-narrowed", Severity.WARNING, __name__, one=find)
