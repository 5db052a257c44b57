"""Aftermath: what a run left behind, looked at only after everything of it is dead."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from skillrun.errors import SkillError
from skillrun.problem import At, Problem, error, warning
from skillrun.skills.digest import identity

if TYPE_CHECKING:
    from skillrun.launch.capture import Captured
    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Policy


def violations(policy: Policy, landscape: Landscape) -> tuple[Problem, ...]:
    """Report a script that is not what was started, and kept paths that appeared during the run.

    What is absent can't be kept away by a rule, so it is looked for afterwards.
    """
    found = []
    try:
        same = identity(policy.script) == policy.script_identity
    except SkillError:
        same = False
    if not same:
        found.append(
            error(
                "script-changed",
                "the script was changed or replaced during the run",
                at=At(path=policy.script),
            )
        )
    for kept in policy.kept:
        if kept.path not in landscape.spots and os.path.lexists(kept.path):
            found.append(
                warning(
                    "protected-appeared",
                    f"`{kept.path}` was made during the run, and what it does later is not confined: {kept.reason}",
                    at=At(path=kept.path),
                    help="look at it before anything uses it",
                )
            )
    return tuple(found)


def structured(stdout: Captured) -> Any:
    """Return the JSON value that a script printed, None when its output is not one whole value."""
    text = stdout.text.strip()
    if stdout.truncated or not text or text[0] not in "{[":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
