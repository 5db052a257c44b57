"""a skill inside another one.

A SKILL.md lies in the folder of another skill.

**Why it matters.** Both are skills of their own. The outer one's folder, the inner skill with it, is readable for
the scripts of the outer one.

**What to do.** Nothing, if it is meant so.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("nested-skill", Severity.NOTE, __name__)
