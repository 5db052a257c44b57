"""an ignore that says no reason.

A comment `skillrun: ignore[RULE]` has nothing behind the bracket, or names no rule that exists.

**Why it matters.** Without a reason nobody can tell later whether it still holds. It hides nothing until it has one.

**Example.** `# skillrun: ignore[undeclared-env] set by our own CI, never by users`

**What to do.** Write the reason behind the bracket, or take the comment out. `skillrun rule` lists the rules.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("ignore-without-reason", Severity.WARNING, __name__)
