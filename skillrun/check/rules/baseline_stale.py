"""an accepted finding that is gone.

The baseline lists a finding that this check did not find any more.

**Why it matters.** The entry would hide the same thing if it came back.

**What to do.** `skillrun check --write-baseline`, and look at the difference.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("baseline-stale", Severity.NOTE, __name__)
