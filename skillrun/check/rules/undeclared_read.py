"""a file that is read and not asked for.

A script opens a path that is written in it, and no `fs_read` or `fs_write` includes that path. Its own skill
folder, temporary files and what every program on the system reads are left out, and so is what a person names
as an argument.

**Why it matters.** Under skillrun the read fails. Everywhere else it works, and nothing in the skill says so.

**How sure.** A path that is written out in a call is high, one in a shell command medium; with an end that is
not known one step less.

**Example.** `open("/etc/hosts")`; `cat config/settings.json`.

**What to do.** Write the path into `fs_read`, or take it from an argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.project import written
from skillrun.check.rule import Rule
from skillrun.check.rules._covered import beyond, in_home, shown, sure, weight
from skillrun.check.static.use import Kind
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each path once; what lies in the home folder has a rule of its own."""
    for used, path in beyond(subject, Kind.READ):
        if in_home(path):
            continue
        yield RULE.finding(
            subject,
            f"`{used.script.name}` reads `{shown(used)}` (`{used.use.what}`), and the skill does not ask for that",
            key=(used.script.name, written(path)),
            at=used.at,
            confidence=sure(used),
            severity=weight(subject),
            help=f'write `fs_read: ["{used.use.value}"]`',
        )


RULE = Rule("undeclared-read", Severity.WARNING, __name__, one=find)
