"""a SKILL.md that can't be read.

The file has no front matter, one that is never closed or is no strict YAML, is not UTF-8, is too large, is a link
that leads elsewhere, or is called `skill.md`.

**Why it matters.** Nothing of it counts: such a skill asks for nothing, gets nothing, and does not run. Other
programs guess, each in its own way, so what one of them reads may be what another one hides.

**What to do.** The message names the line. A fence is a line of exactly `---`; a value with `: ` in it needs quotes.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("skill-unreadable", Severity.ERROR, __name__)
