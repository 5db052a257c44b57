"""a file that is written and not asked for.

A script writes, makes or removes a path that is written in it, and no `fs_write` includes that path. Temporary
files are left out, and so is what a person names as an argument.

**Why it matters.** Under skillrun the write fails. Everywhere else it works, and nothing in the skill says so.

**How sure.** As for `undeclared-read`.

**Example.** `Path("report.md").write_text(text)` in a skill without `fs_write`.

**What to do.** Write the path into `fs_write`; a folder ends with a slash: `fs_write: ["./out/"]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.project import written
from skillrun.check.rule import Rule
from skillrun.check.rules._covered import beyond, in_home, shown, sure, weight
from skillrun.check.static.use import Kind
from skillrun.permissions.capabilities import inside
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each path once; the home folder and the skill's own have rules of their own."""
    own = subject.place.skill
    for used, path in beyond(subject, Kind.WRITE):
        if in_home(path) or (inside(path, own) and str(used.use.value).startswith("${skill}")):
            continue
        yield RULE.finding(
            subject,
            f"`{used.script.name}` writes `{shown(used)}` (`{used.use.what}`), and the skill does not ask for that",
            key=(used.script.name, written(path)),
            at=used.at,
            confidence=sure(used),
            severity=weight(subject),
            help=f'write `fs_write: ["{used.use.value}"]`',
        )


RULE = Rule("undeclared-write", Severity.WARNING, __name__, one=find)
