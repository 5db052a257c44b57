"""a link that leaves the skill.

Somewhere in the skill's folder lies a symbolic link that leads outside of it, or nowhere; or a link to a skill
leads where it may not.

**Why it matters.** A link is followed by whoever copies, packs or opens the skill, and decides then what is read:
`data -> ~/.ssh` is a way to make somebody else's tool read it. skillrun does not follow it.

**How bad.** Out of the project: an error. Nowhere: a warning. Elsewhere in the project: a note.

**What to do.** Put the file itself there, or remove the link.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.check.rule import Rule
from skillrun.problem import At, Severity
from skillrun.skills.disk import is_inside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:
    """Give each link; what discovery said about links below `scripts/` is the same finding, said once."""
    top = str(subject.skill.path)
    for entry in subject.odd_entries:
        if entry.link is None:
            continue
        real = os.path.realpath(f"{top}/{entry.path}")
        if os.path.lexists(real) and is_inside(real, top):
            continue
        where, severity = _leads(real, project)
        yield RULE.finding(
            subject,
            f"`{entry.path}` is a link that leads {where}",
            key=(entry.path, entry.link),
            at=At(subject.skill.path / entry.path),
            severity=severity,
            help="put the file itself there, or remove the link",
        )


def _leads(real: str, project: Project) -> tuple[str, Severity]:
    """Say where a link ends: nowhere, in the project, or outside of it, which is the worst of the three."""
    if not os.path.lexists(real):
        return "nowhere", Severity.WARNING
    label = project.label(Path(real))
    if label.startswith("/"):
        return "out of the project", Severity.ERROR
    return f"to `{label}`, outside of the skill", Severity.NOTE


RULE = Rule("link-out", Severity.WARNING, __name__, one=find)
