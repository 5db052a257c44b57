"""a request for everything.

The skill asks for a home folder, for `/`, for writing the whole workspace, or for any host of a network.

**Why it matters.** Such a request says nothing about what the skill does, so nobody can tell a change for the
worse. Whoever runs it under a wide ceiling gives all of it.

**Example.** `fs_write: ["."]` in a skill that writes one report.

**What to do.** Name the folder or the file: `fs_write: ["./out/"]`. A person who types a path as an argument
grants that path for that run, so most scripts need no broad request. For a network, list the hosts:
`network: [api.example.com:443]`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.check.project import HOME, WORKSPACE
from skillrun.check.rule import Rule
from skillrun.permissions.capabilities import inside
from skillrun.permissions.grant import Capability
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject

_ROOT = Path("/")


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each broad line of the request."""
    write = len(subject.asked_paths[0]) - len(subject.asked_paths[1])
    lines = [*subject.request.of(Capability.FS_READ), *subject.request.of(Capability.FS_WRITE)]
    for number, (asked, path) in enumerate(zip(lines, subject.asked_paths[0], strict=True)):
        what = _broad(path, writing=number >= write)
        if what is not None:
            yield RULE.finding(
                subject,
                f"asks for `{asked.capability.value}: {asked.value}`, {what}",
                key=(asked.capability.value, str(asked.value)),
                at=asked.at,
                help="name the folders and files that it uses",
            )
    for asked in subject.request.of(Capability.NETWORK):
        if asked.value is True:
            yield RULE.finding(
                subject,
                "asks for `network: true`, every host and this machine's own services",
                key=("network", "true"),
                at=asked.at,
                severity=Severity.NOTE,
                help="list the hosts that it talks to: `network: [api.example.com:443]`",
            )


def _broad(path: Path, *, writing: bool) -> str | None:
    if path == _ROOT:
        return "which is everything"
    if path == HOME or path in {Path("/home"), Path("/Users"), Path("/root")}:
        return "which is a home folder with everything in it"
    if writing and inside(WORKSPACE, path):
        return "which lets it change the whole workspace"
    return None


RULE = Rule("broad-request", Severity.WARNING, __name__, one=find)
