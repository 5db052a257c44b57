"""a network that is asked for and not used.

The request has a network, and nothing in the skill's scripts connects.

**Why it matters.** A permission that nothing needs is there for whoever changes the script next, or for a script
that hides what it does.

**How sure.** High where every script was read and starts no other program; medium where it starts programs
whose own network nobody sees. Nothing is said where a script is in a language that is not read, or imports
modules that might connect.

**What to do.** Take `network` out, or write `network: false`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.rule import Rule
from skillrun.check.static.use import Confidence, Kind
from skillrun.permissions.grant import Capability
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give one finding for a skill that asks and does not connect."""
    asked = subject.request.of(Capability.NETWORK)
    if not asked or any(True for _ in subject.uses(Kind.NETWORK)):
        return
    if any(
        reading.language is None or reading.fault is not None or reading.foreign
        for _, reading in subject.readings
    ):
        return
    programs = any(True for _ in subject.uses(Kind.PROGRAM))
    yield RULE.finding(
        subject,
        "asks for a network, and none of its scripts connects",
        key=("network",),
        at=asked[0].at,
        confidence=Confidence.MEDIUM if programs else Confidence.HIGH,
        help="take `network` out of the request",
    )


RULE = Rule("unused-network", Severity.WARNING, __name__, one=find)
