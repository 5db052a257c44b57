"""a program that is started and mentioned nowhere.

A script starts a program that is not part of every system, and neither the front matter nor the text of
SKILL.md names it.

**Why it matters.** The script fails where the program is missing, and whoever installs the skill learns of it
only then. There is no permission for programs: what a script may do is limited whatever it starts.

**How sure.** A literal command is high; one inside a string medium.

**What to do.** Name it in `compatibility`: `compatibility: needs ffmpeg and git`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillrun.check.rule import Rule
from skillrun.check.rules._covered import sure
from skillrun.check.static.shell import no_programs
from skillrun.check.static.use import Kind
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each program once a skill."""
    text: str | None = None
    seen: set[str] = set()
    own = {script.name.rpartition("/")[2] for script in subject.skill.scripts}
    for used in subject.uses(Kind.PROGRAM):
        name = used.use.value
        if name is None or name in seen or name in own or name in no_programs():
            continue
        seen.add(name)
        text = subject.manifest_text if text is None else text
        # As a word: `git` is not named by `digital`.
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text, re.IGNORECASE):
            continue
        yield RULE.finding(
            subject,
            f"`{used.script.name}` starts `{name}` (`{used.use.what}`), which SKILL.md does not mention",
            key=(used.script.name, name),
            at=used.at,
            confidence=sure(used),
            help=f"name it in `compatibility`: `needs {name}`",
        )


RULE = Rule("undeclared-program", Severity.NOTE, __name__, one=find)
