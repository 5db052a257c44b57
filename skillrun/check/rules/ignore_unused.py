"""an ignore that hides nothing.

A comment `skillrun: ignore[RULE]` stands where that rule finds nothing.

**Why it matters.** It would hide the next finding there, which nobody has looked at.

**What to do.** Take it out.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("ignore-unused", Severity.NOTE, __name__)
