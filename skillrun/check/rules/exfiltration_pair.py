"""reading the whole workspace together with a network.

One skill asks to read everything in the workspace and to send.

**Why it matters.** That is all that is needed to carry a repository away: text that the skill reads can tell a
model, or the script itself, to do it. Either right alone is harmless here.

**Example.** `fs_read: ["."]` and `network: true`.

**What to do.** Read one folder (`fs_read: ["./data/"]`), list the hosts, or make two skills: one that reads,
one that sends what a person has looked at. An error where the ceiling lets both through, else a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.project import WORKSPACE
from skillrun.check.rule import Rule
from skillrun.permissions.capabilities import inside
from skillrun.permissions.grant import Capability
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give one finding for the pair."""
    network = subject.request.of(Capability.NETWORK)
    lines = (*subject.request.of(Capability.FS_READ), *subject.request.of(Capability.FS_WRITE))
    reads = [one for one, path in zip(lines, subject.asked_paths[0], strict=True) if inside(WORKSPACE, path)]
    if not network or not reads:
        return
    grant = subject.grant
    real = (
        grant is not None and bool(grant.capabilities.network) and grant.capabilities.allows_read(WORKSPACE)
    )
    yield RULE.finding(
        subject,
        f"asks to read the whole workspace (`{reads[0].capability.value}: {reads[0].value}`) and for a network",
        key=("pair",),
        at=reads[0].at,
        related=(network[0].at,),
        severity=Severity.ERROR if real else Severity.WARNING,
        help="read one folder, or list the hosts; or make two skills of it",
    )


RULE = Rule("exfiltration-pair", Severity.WARNING, __name__, one=find)
