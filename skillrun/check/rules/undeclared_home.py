"""a home folder that is used and not asked for.

A script reads or writes below the home folder: `~/.claude`, `$HOME/.config`, `Path.home()`.

**Why it matters.** Keys, tokens and the history of every agent lie there. A run has a home folder of its own
that is empty, so under skillrun the file is not found; everywhere else it is.

**How sure.** A path that is written out in a call is high, one in a shell command or joined from parts medium.

**What to do.** Take the path from an argument or from the workspace. If it must be there, ask for that exact
path: `fs_read: ["~/.config/tool/settings.json"]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.project import written
from skillrun.check.rule import Rule
from skillrun.check.rules._covered import beyond, in_home, shown, sure
from skillrun.check.static.use import Kind
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject

_VERBS = {Kind.READ: "uses", Kind.WRITE: "writes"}


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each path below home once, the writes first."""
    seen = set()
    for kind in (Kind.WRITE, Kind.READ):
        for used, path in beyond(subject, kind):
            if not in_home(path) or path in seen:
                continue
            seen.add(path)
            yield RULE.finding(
                subject,
                f"`{used.script.name}` {_VERBS[kind]} `{shown(used)}` (`{used.use.what}`), and the skill does not ask for that",
                key=(used.script.name, written(path)),
                at=used.at,
                confidence=sure(used),
                help="take the path from an argument, or ask for exactly this one",
            )


RULE = Rule("undeclared-home", Severity.WARNING, __name__, one=find)
