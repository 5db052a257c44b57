"""Escape: text from skills and scripts is data, also on a terminal (DESIGN 5, law 12).

Control characters move the cursor, bidirectional ones reorder what is read, invisible ones hide a
difference between two names. All of them are shown by their number instead.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Cc control, Cf format (bidirectional marks, tags, zero widths), Cs lone surrogates, Co private use, Cn not
# assigned in this Python, Zl and Zp line and paragraph separators.
_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters, marks and a symbol by category, and yet nothing is seen of them: the joiner, the Hangul fillers,
# the Khmer inherent vowels, Mongolian and other variation selectors, the blank Braille pattern
# (Default_Ignorable_Code_Point of DerivedCoreProperties.txt, and U+2800).
_INVISIBLE: Final = (
    range(0x034F, 0x0350),
    range(0x115F, 0x1161),
    range(0x17B4, 0x17B6),
    range(0x180B, 0x1810),
    range(0x2800, 0x2801),
    range(0x3164, 0x3165),
    range(0xFE00, 0xFE10),
    range(0xFFA0, 0xFFA1),
    range(0xE0100, 0xE01F0),
)
_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BYTE: Final = range(0xDC80, 0xDD00)  # how Python spells a byte of a name that is not UTF-8 (PEP 383)
_UNUSUAL: Final = re.compile(r"[^ -~]")
_LAST_BYTE, _LAST_SHORT = 0xFF, 0xFFFF


def escape(text: str) -> str:
    r"""Return text as one line that shows every character of it: `\x1b`, `\u202e`, `\xff` for a stray byte."""
    return _UNUSUAL.sub(_shown, text)


def sentence(text: str) -> str:
    """Return prose as one line: runs of blanks and line ends become one space, the rest is escaped."""
    return escape(" ".join(text.split()))


def is_hidden(character: str) -> bool:
    """Whether a character is never written as it is."""
    code = ord(character)
    return unicodedata.category(character) in _CATEGORIES or any(code in span for span in _INVISIBLE)


def _shown(match: re.Match[str]) -> str:
    character = match.group()
    if not is_hidden(character):
        return character
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if code in _BYTE:
        return f"\\x{code - _BYTE.start + 0x80:02x}"
    if code <= _LAST_BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_SHORT else f"\\U{code:08x}"
