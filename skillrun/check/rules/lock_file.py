"""a file that is not the one approved.

The skill's files differ from those that `skillrun.lock` was written for: changed, added or removed.

**Why it matters.** The permissions were approved for what the scripts did then.

**What to do.** Look at the change, then `skillrun lock --approve SKILL`.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("lock-file", Severity.WARNING, __name__)
