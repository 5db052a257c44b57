"""a request that can't be read.

One of skillrun's keys has the wrong type, a path that can't be one, or stands in two places.

**Why it matters.** A request with an error grants nothing, and the skill does not run.

**What to do.** The message says what to write. `docs/reference/skill-md.md` has every key.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("request-invalid", Severity.ERROR, __name__)
