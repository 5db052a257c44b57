"""something else that is wrong with a skill.

A problem that `skillrun list` tells and that no rule of `check` covers by name.

**What to do.** The message and its help say.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("other-problem", Severity.WARNING, __name__)
