"""Fields: the fields of a question, filled in at a terminal or from the command line."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from skillrun.cli.terminal import asked
from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.report.waiting import field, quoted
from skillrun.tools.arguments import ArgumentsError, check

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillrun.report.waiting import Waiting

LEFT_OUT: Final = object()
"""What stands for a field without a value."""
_LONGEST: Final = 16 << 20  # characters of an answer on standard input
_WORDS: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


def from_words(words: Sequence[str]) -> dict[str, Any]:
    """Read `NAME=VALUE`, the first `=` between them. UsageError for one that is none, and for a name said twice.

    A value is a text; the schema of its field makes a number, a truth or a list of it.
    """
    values: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or name in values:
            message = (
                f"`--field {word}` names no field and value"
                if name not in values
                else f"`{name}` is said twice"
            )
            raise UsageError(error("usage", message, help="write `--field NAME=VALUE`, once for each field"))
        values[name] = value
    return values


def from_json(text: str) -> dict[str, Any]:
    """Read the values of all fields as a JSON object, `-` for standard input. UsageError for anything else."""
    if text == "-":
        try:
            text = sys.stdin.read(_LONGEST + 1) if sys.stdin is not None else ""
        except UnicodeDecodeError:
            raise UsageError(error("answer", "standard input is not UTF-8")) from None
        if len(text) > _LONGEST:
            raise UsageError(error("answer", f"an answer has at most {_LONGEST >> 20} MiB"))
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        advice = 'write an object in quotes: --json \'{"name": "value"}\''
        raise UsageError(error("answer", "the answer is no JSON object", help=advice))
    return values


def from_terminal(fields: Mapping[str, Any], shown: Waiting) -> dict[str, Any] | None:
    """Ask for each field in turn, again until what is typed fits; None when the terminal is closed."""
    values: dict[str, Any] = {}
    for name, schema in fields.get("properties", {}).items():
        needed = name in fields.get("required", ())
        _tell(field(name, schema, needed=needed), shown)
        value = _one(name, schema if isinstance(schema, dict) else {}, shown, needed=needed)
        if value is None:
            return None
        if value[0] is not LEFT_OUT:
            values[name] = value[0]
    return values


def _tell(text: str, shown: Waiting) -> None:
    """Write the tool's words as such."""
    for line in quoted(text, shown):
        click.echo(line, err=True, color=True)  # the style has decided already


def _one(name: str, schema: Mapping[str, Any], shown: Waiting, *, needed: bool) -> tuple[Any] | None:
    """Ask for one field; the value is in a tuple, as it may be anything."""
    choices = schema.get("enum") if isinstance(schema.get("enum"), list) else None
    for number, choice in enumerate(choices or (), 1):
        _tell(f"  {number}) {json.dumps(choice, ensure_ascii=False)}", shown)
    while (typed := asked(f"  {_wanted(schema, choices)}:")) is not None:
        if typed == "" and "default" in schema:
            value = schema["default"]
        elif typed == "" and not needed:
            return (LEFT_OUT,)
        else:
            value = _read(typed, schema, choices)
        try:
            return (check({name: value}, {"properties": {name: schema}, "required": [name]})[name],)
        except ArgumentsError as wrong:
            click.echo("  that does not fit:", err=True)
            _tell(str(wrong).removeprefix("invalid arguments: "), shown)
    return None


def _wanted(schema: Mapping[str, Any], choices: Sequence[Any] | None) -> str:
    if choices is not None:
        return f"a number, 1 to {len(choices)}"
    if schema.get("type") == "boolean":
        return "y or n"
    kind = schema.get("type")
    return {"string": "a text", "integer": "a whole number", "number": "a number"}.get(
        kind if isinstance(kind, str) else "", "JSON"
    )


def _read(typed: str, schema: Mapping[str, Any], choices: Sequence[Any] | None) -> Any:
    """Read what was typed; what can't be read stays as it is, and then does not fit."""
    if choices is not None:
        known = typed.isascii() and typed.isdecimal() and len(typed) < 10 and 1 <= int(typed) <= len(choices)  # noqa: PLR2004 - as many digits as any list has
        return choices[int(typed) - 1] if known else typed
    kind = schema.get("type")
    if kind == "boolean":
        return _WORDS.get(typed.strip().lower(), typed)
    if kind == "string":
        return typed
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        return typed
