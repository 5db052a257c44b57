"""an approved skill that is gone.

`skillrun.lock` has an entry for a skill that is not found here.

**Why it matters.** A skill that comes back under that path with the same bytes would count as approved.

**What to do.** `skillrun lock --approve PATH` removes the entry of a skill that is gone.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("lock-stale", Severity.WARNING, __name__)
