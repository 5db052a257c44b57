"""a key that is almost one of ours.

The front matter has `fs_reads`, `fs-read`, `netwrok` or the like.

**Why it matters.** Somebody believes that this line asks for something. Whether it does is not guessed, so the
skill does not run.

**What to do.** Write the key that the message names, or rename it if it is meant for another program.
"""

from __future__ import annotations

from skillrun.check.rule import Rule
from skillrun.problem import Severity

RULE = Rule("near-key", Severity.ERROR, __name__)
