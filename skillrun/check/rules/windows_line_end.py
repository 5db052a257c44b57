r"""an interpreter line with a Windows line end.

The first line of a script ends with CR LF.

**Why it matters.** The system looks for an interpreter whose name ends with a carriage return: `python3\\r: No such
file or directory`. skillrun reads past it, a plain start does not.

**What to do.** Save the file with LF line ends, and keep it so: `*.sh text eol=lf` in `.gitattributes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.rule import Rule
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each script with such a line."""
    for script in subject.skill.scripts:
        for problem in script.problems:
            if problem.rule == "script-windows-line-end":
                yield RULE.finding(
                    subject, problem.message, key=(script.name,), at=problem.at, help=problem.help
                )


RULE = Rule("windows-line-end", Severity.WARNING, __name__, one=find)
