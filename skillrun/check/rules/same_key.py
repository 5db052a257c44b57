"""two skills with one name.

Two skills that are found here have the same key.

**Why it matters.** `run NAME` starts the first of them only; which that is depends on the order of the roots.

**What to do.** Rename one, or check the folders one by one if they are copies for different programs.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("same-key", Severity.NOTE, __name__)
