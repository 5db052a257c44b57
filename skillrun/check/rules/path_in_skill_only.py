"""a path that lies in the skill and not in the workspace.

The request names a relative path that exists in the skill's own folder, and not in the folder the skill runs in.

**Why it matters.** Relative paths start from the workspace, so this line asks for something else than its author
meant. The skill's own folder is readable in every run without asking.

**Example.** `fs_read: ["./templates"]` where `templates` is part of the skill.

**What to do.** Take the line out, or write `${skill}/templates`, or run in the skill's folder (`cwd: skill`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.rule import Rule
from skillrun.permissions.grant import Capability, Cwd
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each such line of the request."""
    if subject.request.cwd is Cwd.SKILL:
        return
    skill, resolver = subject.place.skill, subject.resolver
    for asked in (*subject.request.of(Capability.FS_READ), *subject.request.of(Capability.FS_WRITE)):
        text = str(asked.value)
        if text.startswith(("/", "~", "$")) or text.strip("./") == "":
            continue
        here, there = resolver.follow(str(subject.resolved(text))), resolver.follow(f"{skill}/{text}")
        if there.exists and not here.exists:
            yield RULE.finding(
                subject,
                f"asks for `{asked.capability.value}: {text}`, which lies in the skill and not in the workspace",
                key=(asked.capability.value, text),
                at=asked.at,
                help=f"the skill's folder is readable anyway; or write `${{skill}}/{text.removeprefix('./')}`",
            )


RULE = Rule("path-in-skill-only", Severity.WARNING, __name__, one=find)
