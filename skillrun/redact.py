"""Redact: secrets taken out of what is written down, by their shape and by their value."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final

from skillrun.resources import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MARK: Final = "[redacted]"
_SHORTEST: Final = 8  # characters of a value that is looked for: shorter ones stand in words by chance
_NAMES: Final = re.compile(r"(?i)(pass(word|wd|phrase)?|secret|token|key|credential|auth|cookie|session)")


class Redactor:
    """Takes out secrets: those of `profiles/redact.yaml` by their shape, and the values it is made with."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        # The longest first: one value may begin with another.
        self._values = sorted({value for value in values if len(value) >= _SHORTEST}, key=len, reverse=True)

    @classmethod
    def of_environment(cls, environ: Mapping[str, str]) -> Redactor:
        """Make one that knows the values of variables whose names say that they are secret."""
        return cls(value for name, value in environ.items() if _NAMES.search(name))

    def text(self, text: str) -> str:
        """Return a text with a mark in place of every secret."""
        for value in self._values:
            text = text.replace(value, MARK)
        for pattern in _shapes():
            text = pattern.sub(rf"\1{MARK}", text)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value with every text in it redacted; keys are ours and stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner) for inner in value]
        return value


@functools.cache
def _shapes() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(row["pattern"]) for row in table("redact"))
