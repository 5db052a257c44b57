"""a script that nothing can start.

A script's interpreter line names a program that is not on this machine, a path that exists only on its author's,
or can't be followed; or the file is executable and says nothing about what runs it.

**Why it matters.** It fails with exit code 127 wherever that program is missing.

**How sure.** A path below a home folder, and a line that can't be followed, are high: that works nowhere else.
A program that is not found on this machine is medium, since another machine may have it.

**Example.** `#!/home/me/venv/bin/python`

**What to do.** Write `#!/usr/bin/env python3`, or the name of the interpreter it is written for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.rule import Rule
from skillrun.check.static.use import Confidence
from skillrun.errors import SkillError
from skillrun.problem import At, Severity
from skillrun.skills.interpreter import find_interpreter
from skillrun.skills.model import Starter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject
    from skillrun.skills.model import Command

_PRIVATE = ("/home/", "/Users/", "/root/", "/opt/", "/data/", "/nix/store/", "/private/", "/tmp/", "/var/")  # noqa: S108 - beginnings to compare with
_SAID = frozenset({"script-interpreter-line", "script-no-interpreter", "script-empty"})


def find(subject: Subject, project: Project) -> Iterator[Finding]:
    """Give each script with such a line."""
    for script in subject.skill.scripts:
        for problem in script.problems:
            if problem.rule in _SAID:
                yield RULE.finding(
                    subject,
                    problem.message,
                    key=(script.name, problem.rule),
                    at=problem.at,
                    help=problem.help,
                )
        command = script.command
        if command is None or command.starter is Starter.NATIVE:
            continue
        private = command.starter is Starter.SHEBANG and command.program.startswith(_PRIVATE)
        reason = "a path of its author's machine" if private else _missing(command, project)
        if reason is not None:
            yield RULE.finding(
                subject,
                f"`{script.name}` is started by `{command.program}`, {reason}",
                key=(script.name, command.program),
                at=At(script.path, 1, 1),
                confidence=Confidence.HIGH if private else Confidence.MEDIUM,
                severity=None if private else Severity.NOTE,
                help="write `#!/usr/bin/env NAME`" if private else "install it where the skill is to run",
            )


def _missing(command: Command, project: Project) -> str | None:
    """Return why an interpreter can't be used here, None when it can; looked up once a check."""
    known = project.interpreters
    if command.program not in known:
        try:
            find_interpreter(command, search=project.host.environ.get("PATH", ""), home=project.host.home)
        except SkillError as wrong:
            known[command.program] = (
                "which was not found on this machine"
                if wrong.problem.rule == "interpreter-not-found"
                else wrong.problem.message
            )
        else:
            known[command.program] = None
    return known[command.program]


RULE = Rule("interpreter-missing", Severity.WARNING, __name__, one=find)
