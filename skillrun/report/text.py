"""Text: how wide a line is on a terminal, and fitting it. Everything here comes escaped already."""

from __future__ import annotations

import textwrap
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LEAST = 20  # columns: below this nothing is readable, and lines run over instead


def width(text: str) -> int:
    """Return the columns that text takes: two for a wide character, none for a combining mark."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def clip(text: str, columns: int) -> str:
    """Return text in at most so many columns, with `…` where something is missing."""
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for character in text:
        used += _columns(character)
        if used > columns - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def fold(text: str, columns: int, *, indent: str, first: str | None = None) -> list[str]:
    """Break text into lines at blanks, each indented. A word that is too long, such as a path, stays whole."""
    return textwrap.wrap(
        text,
        max(columns, _LEAST),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [(indent if first is None else first).rstrip()]


def fold_items(items: Iterable[str], columns: int, *, indent: str, first: str) -> list[str]:
    """Write items after one another with commas, breaking only between them, so that a path stays whole."""
    lines, line = [], first
    empty = True
    for item in items:
        if not empty and width(line) + width(item) + 2 > max(columns, _LEAST):
            lines.append(line + ",")
            line, empty = indent, True
        line += item if empty else f", {item}"
        empty = False
    return [*lines, line]


def counted(number: int, word: str) -> str:
    """Write `1 error` or `2 errors`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
