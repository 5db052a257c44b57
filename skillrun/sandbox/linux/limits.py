"""What a level can't do, from `profiles/linux/level1.yaml`, and whether a script seems to have met it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillrun import resources
from skillrun.problem import Problem, note
from skillrun.sandbox.linux import level1

if TYPE_CHECKING:
    from collections.abc import Iterator


def limits_of(level: int | None) -> tuple[tuple[str, str, str], ...]:
    """Return the limits of a level: name, what a script can't do, and why. Only level 1 has any."""
    if level != level1.LEVEL:
        return ()
    return tuple((row["limit"], row["what"], row["why"]) for row in resources.table("linux/level1"))


def limits_met(level: int | None, stderr: str) -> Iterator[Problem]:
    """Guess from what a failed script wrote which limits of its level it met. A guess, and said to be one."""
    if level != level1.LEVEL:
        return
    for row in resources.table("linux/level1"):
        if row["seen"] is not None and re.search(row["seen"], stderr):
            yield note(
                f"level1-{row['limit']}",
                f"perhaps the script met a limit of level 1 (a guess from its stderr): {row['what']}",
                help="`skillrun doctor` says how to get level 2",
            )
