"""a line of a ceiling that has no effect.

A path of the ceiling leads nowhere or out of the workspace through a link, or an entry for a skill was written for
another version of it.

**Why it matters.** Somebody believes that this line allows or limits something.

**What to do.** Correct the line, or remove it. For an entry, look at what changed in the skill, then write the new
digest (`skillrun show SKILL` prints it).
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("ceiling-idle", Severity.WARNING, __name__)
