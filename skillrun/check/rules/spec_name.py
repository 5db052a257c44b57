"""a name that the specification does not allow.

The name is missing, is no string, differs from its folder's, or has characters other than `a-z`, `0-9` and single
hyphens, or more than 64 of them.

**Why it matters.** The published specification asks for it, and programs look a skill up by one name or the other.

**What to do.** Give folder and `name` the same name by that rule.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("spec-name", Severity.NOTE, __name__)
