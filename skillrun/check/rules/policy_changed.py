"""a change to what guards the skills.

With `--policy-from BASE` the ceiling, the lock, the baseline and the ignores come from BASE, and the version under
review changes one of them.

**Why it matters.** Who can change what a check believes can pass any check. So a change to it never counts for the
check of the same change, and no ignore and no baseline hides this finding.

**What to do.** A person who may decide looks at exactly this change and merges it. From then on it counts.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("policy-changed", Severity.ERROR, __name__)
