"""a file that others can write, or that is set-id.

A file or folder of the skill can be changed by everybody on this machine, or carries a set-user-id or
set-group-id bit.

**Why it matters.** Whoever can change a script decides what it does with the next person's rights. A set-id
program acts with its owner's rights whoever starts it; skillrun denies that, other runners don't.

**What to do.** `chmod go-w FILE`, `chmod u-s,g-s FILE`.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from skillrun.check.rule import Rule
from skillrun.problem import At, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each such entry."""
    for entry in subject.odd_entries:
        if entry.link is not None:
            continue
        set_id = stat.S_ISREG(entry.mode) and entry.mode & (stat.S_ISUID | stat.S_ISGID)
        if set_id:
            message, change = f"`{entry.path}` is set-id", "u-s,g-s"
        elif entry.mode & stat.S_IWOTH and not (stat.S_ISDIR(entry.mode) and entry.mode & stat.S_ISVTX):
            message, change = f"`{entry.path}` can be written by everybody on this machine", "go-w"
        else:
            continue
        path = subject.skill.path / entry.path if entry.path != "." else subject.skill.path
        yield RULE.finding(
            subject,
            message,
            key=(entry.path, change),
            at=At(path),
            severity=Severity.ERROR if set_id else None,
            help=f"chmod {change} `{entry.path}`",
        )


RULE = Rule("loose-modes", Severity.WARNING, __name__, one=find)
