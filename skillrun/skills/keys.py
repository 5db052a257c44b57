"""The key of a skill: what `run` finds it by."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from skillrun.problem import At, Problem, warning

if TYPE_CHECKING:
    from pathlib import Path

LENGTH: Final = 64
"""Characters of a key, as in the published specification."""
RULE_TEXT: Final = f"1 to {LENGTH} of a-z, 0-9 and single hyphens, none at an end"

_KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")


def as_key(text: str) -> str | None:
    """Return the key that a name or folder name makes, None when it breaks the rule.

    Compatibility forms are one with their plain letters (NFKC), so that two names that look the same
    can't be two skills. Capitals break the rule: nothing is guessed.
    """
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return plain if len(plain) <= LENGTH and _KEY.match(plain) else None


def skill_key(
    name: str | None, folder: str, *, manifest: Path, at: At | None
) -> tuple[str | None, tuple[Problem, ...]]:
    """Choose a skill's key: its name, else its folder's name, else None (reachable by path only).

    `at` is the place of the name. The problems say when the name was not used, or differs from the folder.
    """
    own = as_key(name) if name is not None else None
    if own is not None and own == folder:
        return own, ()
    other = as_key(folder)
    if own is not None and own == other:
        return own, ()
    if name is None and other is not None:
        return other, ()  # that the name is missing is said where the front matter is read
    where = at or At(manifest)
    if own is not None:
        message = f"the name is `{own}`, the folder is `{folder}`; the skill is run as `{own}`"
        return own, (warning("name-differs-from-folder", message, at=where, help="give both the same name"),)
    if other is not None:
        message = f"the name can't be a key ({RULE_TEXT}); the skill is run as `{other}`, after its folder"
        return other, (warning("name-rule", message, at=where, help=f"write `name: {other}`"),)
    message = f"neither name nor folder can be a key ({RULE_TEXT}); the skill is run by its path only"
    return None, (warning("name-rule", message, at=where, help="choose a name by that rule"),)
