"""Told: what a skill wrote, as it may stand in a tool's definition (law 12).

One number that JSON does not have, or half a character, makes a model API refuse every tool of the request; what is
not seen on a screen is read by a model all the same; and a list of choices may be longer than a conversation.
"""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from skillrun.tools.interface import Interface

LONGEST_TEXT: Final = 1_024
"""Characters of a description (facts/mcp 3: more was an error of one API)."""
_LARGEST_VALUE: Final = 20_000  # characters of an enumeration; Gemini refuses requests from about 77 kB on
_LARGEST_NUMBER: Final = 10**18
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})  # as in report/escape
_TEXTS: Final = frozenset({"description", "title"})
_SCHEMAS: Final = frozenset({"items", "additionalProperties"})
_LISTS: Final = frozenset({"prefixItems", "anyOf", "oneOf", "allOf"})


def prose(text: str, most: int = LONGEST_TEXT) -> str:
    """Return a text with hidden characters shown by their number, cut to `most` characters."""
    shown = "".join(one if one in "\n\t" or not hidden(one) else f"\\u{ord(one):04x}" for one in text[:most])
    return shown if len(shown) <= most and len(text) <= most else shown[: most - 2].rsplit(" ", 1)[0] + " …"


def hidden(character: str) -> bool:
    """Whether nothing is seen of a character, or it moves what is seen."""
    return (
        (character > "~" and unicodedata.category(character) in _HIDDEN)
        or character < " "
        or character == "\x7f"
    )


def interface_told(interface: Interface) -> Interface | None:
    """Return an interface whose schema every API takes; None for a sub-command whose name can't be told."""
    if any(map(hidden, "".join(interface.subcommand))):
        return None
    made = tuple(replace(one, schema=schema_told(dict(one.schema))) for one in interface.parameters)
    return replace(interface, parameters=made)


def schema_told(schema: Any) -> Any:
    """Return a schema without the values that no API takes; the script still takes them."""
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _TEXTS and isinstance(value, str):
            made[key] = prose(value)
        elif key in _SCHEMAS:
            made[key] = schema_told(value)
        elif key in _LISTS and isinstance(value, list):
            made[key] = [schema_told(one) for one in value]
        elif key == "properties" and isinstance(value, dict):
            made[key] = {name: schema_told(one) for name, one in value.items()}
        elif _cost(value, _LARGEST_VALUE) <= _LARGEST_VALUE:
            made[key] = value
    return made


def _cost(value: Any, most: int) -> int:
    """Return about how many characters a value has as JSON, above `most` as soon as it is more or can't be one."""
    if isinstance(value, str):
        return (
            most + 1
            if len(value) > most or any(map(hidden, value.replace("\n", "").replace("\t", "")))
            else len(value)
        )
    if isinstance(value, int | float):
        return 8 if -_LARGEST_NUMBER < value < _LARGEST_NUMBER else most + 1  # neither NaN nor infinity is
    spent = 8
    if isinstance(value, list | dict):
        for one in value if isinstance(value, list) else (part for item in value.items() for part in item):
            spent += _cost(one, most - spent) + 4
            if spent > most:
                break
    return spent
