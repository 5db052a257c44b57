"""something that was not looked at.

A folder or a script can't be read, there are more files or folders than are looked at, or a root does not exist.

**Why it matters.** What was not looked at is not clean.

**What to do.** Mend the modes, or name a folder further down.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("not-checked", Severity.ERROR, __name__)
