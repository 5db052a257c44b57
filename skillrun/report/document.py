"""Document: a JSON text that every reader takes: UTF-8, no lone surrogates, no Infinity, nothing hidden."""

from __future__ import annotations

import json
import math
import os
import re
from typing import TYPE_CHECKING, Any, Final

from skillrun.report.escape import is_hidden

if TYPE_CHECKING:
    from pathlib import Path

DEPTH: Final = 100
"""Levels of a script's own JSON that are passed on; deeper ones would be a stack overflow in somebody's parser."""
_UNUSUAL: Final = re.compile(r"[^ -~\n]")
_BYTE: Final = range(0xDC80, 0xDD00)  # how Python spells a byte of a name that is not UTF-8 (PEP 383)
_LAST_SHORT: Final = 0xFFFF
_LONE: Final = re.compile("[\ud800-\udfff]")


class TooDeepError(ValueError):
    """A value has more levels than a document passes on."""


def write(document: dict[str, Any]) -> bytes:
    """Return a document as UTF-8, a member a line, and an element a line in a list of objects.

    Values are cleaned: see `clean`.
    """
    cleaned = clean(document, depth=4 * DEPTH)
    lines = [f"  {_text(key)}: {_member(value)}" for key, value in cleaned.items()]
    # What is hidden stands inside strings only, where JSON has an escape for it: nothing is lost, and a
    # document that is printed on a terminal moves no cursor.
    return _UNUSUAL.sub(_escaped, "{\n" + ",\n".join(lines) + "\n}\n").encode()


def line(document: dict[str, Any]) -> bytes:
    """Return a document as one line of JSON Lines, cleaned and escaped as `write` does."""
    return (_UNUSUAL.sub(_escaped, _text(clean(document, depth=4 * DEPTH))) + "\n").encode()


def clean(value: Any, *, depth: int = DEPTH) -> Any:
    """Return a JSON value with lone surrogates replaced, and null for a number that JSON does not have.

    Raises TooDeepError when it has more than `depth` levels.
    """
    if depth < 0:
        raise TooDeepError
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean(str(key)): clean(inner, depth=depth - 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean(inner, depth=depth - 1) for inner in value]
    return value


def name(path: Path | str) -> str:
    """Return a path as it is; one that is not UTF-8 with `%` and its stray bytes percent-encoded."""
    text = os.fspath(path)
    if not _LONE.search(text):
        return text
    return "".join(_percent(character) for character in text)


def _member(value: Any) -> str:
    if not isinstance(value, list) or not any(isinstance(inner, dict) for inner in value):
        return _text(value)
    return "[\n" + ",\n".join(f"    {_text(inner)}" for inner in value) + "\n  ]"


def _text(value: Any) -> str:
    # On one line, since only then the encoder is the fast one.
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _percent(character: str) -> str:
    code = ord(character)
    if code in _BYTE:
        return f"%{code - _BYTE.start + 0x80:02X}"
    return "%25" if character == "%" else character


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    if not is_hidden(character):
        return character
    code = ord(character)
    if code <= _LAST_SHORT:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
