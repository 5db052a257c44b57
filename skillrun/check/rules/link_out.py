"""a link that leaves the skill.

Somewhere in the skill's folder lies a symbolic link that leads outside of it, or nowhere; or a link to a skill
leads where it may not.

**Why it matters.** A link is followed by whoever copies, packs or opens the skill, and decides then what is read:
`data -> ~/.ssh` is a way to make somebody else's tool read it. skillrun does not follow it.

**What to do.** Put the file itself there, or remove the link.
"""

from __future__ import annotations

import os
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
        dead = not os.path.lexists(real)
        inside = project.label(subject.skill.path / real) if not dead else ""
        where = (
            "nowhere"
            if dead
            else f"to `{inside}`, outside of the skill"
            if not inside.startswith("/")
            else "out of the project"
        )
        yield RULE.finding(
            subject,
            f"`{entry.path}` is a link that leads {where}",
            key=(entry.path, "dead" if dead else "out"),
            at=At(subject.skill.path / entry.path),
            severity=Severity.ERROR if inside.startswith("/") else None,
            help="put the file itself there, or remove the link",
        )


RULE = Rule("link-out", Severity.WARNING, __name__, one=find)
