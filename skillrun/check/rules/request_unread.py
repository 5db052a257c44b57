"""a line that looks like a request and is none.

`env`, `limits`, `cwd`, `approval` or `scripts` at top level are other people's words; `fs_read` inside another map,
such as `permissions`, is read by nobody.

**Why it matters.** The line has no effect in skillrun.

**What to do.** Write it at top level (`fs_read`, `fs_write`, `network`, `timeout`, `trust`) or under
`metadata.skillrun`.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("request-unread", Severity.NOTE, __name__)
