"""Style: colour for the few words that are worth it, decided by the caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_CODES: Final = {
    "red": "31",
    "yellow": "33",
    "blue": "34",
    "green": "32",
    "cyan": "36",
    "bold": "1",
    "dim": "2",
}


@dataclass(frozen=True, slots=True)
class Style:
    """Writes text in a colour, or leaves it as it is. No meaning ever rests on colour alone."""

    colour: bool = False

    def __call__(self, text: str, *names: str) -> str:
        """Return text with the colours named: red, yellow, green, blue, cyan, bold, dim."""
        if not self.colour or not text or not names:
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"


PLAIN: Final = Style()
