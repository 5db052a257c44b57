"""a script that writes into its own skill.

A script writes below its own folder, such as a cache beside itself.

**Why it matters.** The folder of a skill is never writable in a run: a script that can change itself, its
SKILL.md or its neighbours decides what the next run is. So this write fails, whatever is asked for.

**What to do.** Write below `$WORKSPACE`, or into `$SKILLRUN_OUTPUT_DIR` or a temporary folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.project import written
from skillrun.check.rule import Rule
from skillrun.check.rules._covered import beyond, shown, sure
from skillrun.check.static.use import Kind
from skillrun.permissions.capabilities import inside
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each path below the skill that is reached from the script's own place."""
    own = subject.place.skill
    for used, path in beyond(subject, Kind.WRITE):
        if inside(path, own) and str(used.use.value).startswith("${skill}"):
            yield RULE.finding(
                subject,
                f"`{used.script.name}` writes `{shown(used)}` (`{used.use.what}`), and a skill's own folder is never writable",
                key=(used.script.name, written(path)),
                at=used.at,
                confidence=sure(used),
                help="write into the workspace, or into a temporary folder",
            )


RULE = Rule("write-to-skill", Severity.WARNING, __name__, one=find)
