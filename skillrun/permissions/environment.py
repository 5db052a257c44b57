"""Environment: the variables that nobody can have, and those that every run has anyway."""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase

from skillrun.resources import table


def refusal(name: str) -> str | None:
    """Return why a variable is never passed, or None. Letter case does not count: programs read `http_proxy` too."""
    upper = name.upper()
    return next((reason for pattern, reason in _refused() if fnmatchcase(upper, pattern)), None)


@functools.cache
def always_passed() -> frozenset[str]:
    """Return the names that every run gets without asking (DESIGN 9)."""
    return frozenset(table("env")["always"])


@functools.cache
def _refused() -> tuple[tuple[str, str], ...]:
    return tuple(
        (name.upper(), group["reason"]) for group in table("env")["refused"] for name in group["names"]
    )
