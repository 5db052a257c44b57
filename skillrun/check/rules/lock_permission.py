"""a permission that is not the one approved.

What the skill would get now differs from what stands in `skillrun.lock`: gained, lost or changed.

**Why it matters.** Somebody approved another set of permissions than the one that would hold now. The skill asks
for something else, or the ceiling changed.

**What to do.** Look at it (`skillrun diff BASE`), then `skillrun lock --approve SKILL`.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("lock-permission", Severity.ERROR, __name__)
