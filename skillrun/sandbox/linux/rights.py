"""Landlock's rights as masks, from `profiles/linux/landlock.yaml`."""

from __future__ import annotations

import functools
from typing import Final

from skillrun import resources

LEAST_ABI: Final = 3  # truncate; without it any file the user owns can be emptied
SIGNAL_ABI: Final = 6  # scoped signals


@functools.cache
def handled(kind: str, abi: int) -> int:
    """Return the mask of all rights of a kind (`fs`, `net`, `scope`) that an ABI knows."""
    rights = resources.table("linux/landlock")[kind].values()
    return sum(1 << right["bit"] for right in rights if right["abi"] <= abi)


@functools.cache
def access(name: str, abi: int) -> int:
    """Return the mask of one of our kinds of access (`read`, `write`, `list`, `device`) under an ABI."""
    table = resources.table("linux/landlock")
    bits = (table["fs"][right] for right in table["access"][name])
    return sum(1 << right["bit"] for right in bits if right["abi"] <= abi)
