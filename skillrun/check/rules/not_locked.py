"""a skill that nobody has approved.

`skillrun.lock` has no entry for this skill.

**Why it matters.** With a lock every skill's permissions have been seen by a person. This one's have not.

**What to do.** `skillrun lock --approve SKILL` shows what it gets and asks.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("not-locked", Severity.ERROR, __name__)
