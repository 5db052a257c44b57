"""a script that can't be read as its language.

A Python script has a syntax error, a script is no text, or it is larger than what is read (1 MiB).

**Why it matters.** It does not run, and nothing was found out about it: the other rules are silent about this
script because they saw nothing, not because there is nothing.

**How sure.** High; low and a note where the error is one that a newer Python does not have (f-strings, 3.12). The
message names the version that reads it.

**What to do.** Mend it, or take it out of `scripts/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.rule import Rule
from skillrun.check.static.use import Confidence
from skillrun.problem import At, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give each script with a fault."""
    for script, reading in subject.readings:
        if reading.fault is not None:
            line = reading.fault.line
            excerpt = reading.line(line)
            yield RULE.finding(
                subject,
                f"`{script.name}` was not checked: {reading.fault.message}",
                key=(script.name,),
                at=At(script.path, line or None, reading.fault.column if line else None, excerpt=excerpt),
                severity=Severity.NOTE if reading.fault.newer else None,
                confidence=Confidence.LOW if reading.fault.newer else Confidence.HIGH,
                help="check it with that Python"
                if reading.fault.newer
                else "mend it, or take it out of `scripts`",
            )


RULE = Rule("script-unparsable", Severity.ERROR, __name__, one=find)
