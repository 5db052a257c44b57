"""Paging: lists in an order and in pages that do not change by themselves."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
PAGE: Final = 64
"""Entries of one page."""


def page(
    entries: Iterable[T], key: Callable[[T], str], cursor: str | None, size: int = PAGE
) -> tuple[list[T], str | None]:
    """Return a page of entries in the order of their keys, and the cursor of the next one.

    The cursor holds the last key, so a list that grows or shrinks between two pages shifts nothing. Raises
    MCPError for a cursor that is none of ours.
    """
    ordered = sorted(entries, key=key)
    start = 0 if cursor is None else bisect_right([key(one) for one in ordered], _read(cursor))
    found = ordered[start : start + size]
    return found, _written(key(found[-1])) if start + size < len(ordered) else None


def _written(key: str) -> str:
    return base64.urlsafe_b64encode(f"after:{key}".encode()).decode()


def _read(cursor: str) -> str:
    try:
        text = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    if not text.startswith("after:"):
        raise MCPError(types.INVALID_PARAMS, "Invalid cursor")
    return text.removeprefix("after:")
