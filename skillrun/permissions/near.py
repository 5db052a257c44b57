"""Near keys: what somebody meant who wrote a key that is almost one of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def near_key(key: str, keys: Iterable[str], *, exact: bool = False) -> str | None:
    """Return the key that a word is within letter case, `-` and `_`, plural, or one edit of; `exact`: not the edit."""
    folded = _folded(key)
    keys = tuple(keys)
    same = next((known for known in keys if _folded(known) == folded), None)
    if same is not None or exact:
        return same
    return next((known for known in keys if _one_edit(key, known)), None)


def _folded(key: str) -> str:
    return key.lower().replace("-", "").replace("_", "").removesuffix("s")


def _one_edit(word: str, key: str) -> bool:
    if abs(len(word) - len(key)) > 1:
        return False
    start = next(
        (i for i, (a, b) in enumerate(zip(word, key, strict=False)) if a != b), min(len(word), len(key))
    )
    rest, other = word[start:], key[start:]
    swapped = rest[1::-1] + rest[2:]
    return rest[1:] == other[1:] or rest[1:] == other or rest == other[1:] or swapped == other
