"""Script entries: what a skill says its scripts take (`metadata.skillrun.scripts`), read as strictly as the rest of a request.

It stands here and not with the tools because a parameter's `access` is part of what is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from skillrun.permissions.near import near_key
from skillrun.permissions.reading import is_null
from skillrun.skills.node import Items, Mapping, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillrun.permissions.reading import Reader
    from skillrun.problem import At
    from skillrun.skills.node import Entry, Node

ENTRY_KEYS: Final = ("description", "parameters", "timeout", "output", "subcommands")
OWN_KEYS: Final = ("arg", "repeat", "false_arg", "access", "required")
"""Keys of a parameter that are ours; the rest are JSON Schema's. `required` is ours when it is a truth."""
SCHEMA_KEYS: Final = (
    "type", "enum", "const", "title", "description", "default", "examples", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "format", "items", "prefixItems", "minItems",
    "maxItems", "uniqueItems", "properties", "required", "additionalProperties", "anyOf", "oneOf", "allOf",
)  # fmt: skip
"""Keywords of JSON Schema 2020-12 that a parameter may use. No `$ref`: nothing is ever looked up somewhere else."""
PARAMETER_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""What every model API takes as the name of an argument (facts/mcp 3)."""
_FLAG: Final = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_.-]*=?")
_SUBCOMMAND: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
_MOST_ITEMS: Final = 1_000  # of a list in a schema; models refuse enumerations of more than 500
_TYPES: Final = ("string", "integer", "number", "boolean", "array", "object", "null")


@dataclass(frozen=True, slots=True)
class DeclaredParameter:
    """One parameter. `arg` is its position from 1, its flag, or `stdin`; None is `--name`. `access` is `read` or `write`."""

    name: str
    schema: dict[str, Any]
    at: At
    required: bool
    arg: int | str | None = None
    repeat: bool = False
    false_arg: str | None = None
    access: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptEntry:
    """What is said about one script, or one of its sub-commands. None is what was not said: it is inferred."""

    name: str
    at: At
    description: str | None = None
    parameters: tuple[DeclaredParameter, ...] | None = None
    timeout: float | None = None
    output: str | None = None
    subcommands: tuple[ScriptEntry, ...] = ()


def read_script_entries(node: Mapping, reader: Reader) -> tuple[ScriptEntry, ...]:
    """Read the map from script names to what each takes; what is wrong is noted with its place."""
    return tuple(_entry(entry, reader, f"scripts.{entry.key}") for entry in node)


def _entry(entry: Entry, reader: Reader, spelled: str, *, inner: bool = False) -> ScriptEntry:
    made = ScriptEntry(entry.key, entry.at)
    if is_null(entry.value):
        return made
    if not isinstance(entry.value, Mapping):
        reader.wrong_type(spelled, entry.value, "a map with " + ", ".join(f"`{key}`" for key in ENTRY_KEYS))
        return made
    keys = ("description", "parameters") if inner else ENTRY_KEYS
    for one in entry.value:
        if one.key not in keys:
            _unknown(reader, one, spelled, keys)
        elif not is_null(one.value):
            made = replace(made, **_said(one, reader, f"{spelled}.{one.key}"))
    if made.parameters is not None and made.subcommands:
        at = entry.value.at
        reader.fault(
            "type",
            f"`{spelled}` has both `parameters` and `subcommands`",
            at,
            "give each sub-command its parameters",
        )
    return made


def _said(one: Entry, reader: Reader, spelled: str) -> dict[str, Any]:
    match one.key:
        case "description":
            return {"description": reader.text(spelled, one.value)}
        case "timeout":
            return {"timeout": reader.seconds(spelled, one.value)}
        case "output":
            return {"output": reader.word(spelled, one.value, ("text", "json"))}
        case "parameters":
            return {"parameters": _parameters(one.value, reader, spelled)}
    if not isinstance(one.value, Mapping):
        reader.wrong_type(spelled, one.value, "a map from the name of a sub-command to what it takes")
        return {}
    for sub in one.value:
        if not _SUBCOMMAND.fullmatch(sub.key):
            reader.fault(
                "type",
                f"`{spelled}.{sub.key}` can't be a sub-command",
                sub.at,
                "write the one word that the script knows",
            )
    return {
        "subcommands": tuple(_entry(sub, reader, f"{spelled}.{sub.key}", inner=True) for sub in one.value)
    }


def _unknown(reader: Reader, one: Entry, spelled: str, keys: tuple[str, ...]) -> None:
    near = near_key(one.key, keys)
    advice = f"did you mean `{near}`?" if near else "the keys are " + ", ".join(keys)
    reader.fault("near-key" if near else "unknown-key", f"`{spelled}.{one.key}` is not a key", one.at, advice)


def _parameters(node: Node, reader: Reader, spelled: str) -> tuple[DeclaredParameter, ...] | None:
    if not isinstance(node, Mapping):
        reader.wrong_type(spelled, node, "a map from the name of a parameter to its JSON Schema")
        return None
    made = [one for entry in node if (one := _parameter(entry, reader, f"{spelled}.{entry.key}")) is not None]
    _check_words(made, reader)
    return tuple(made)


def _parameter(entry: Entry, reader: Reader, spelled: str) -> DeclaredParameter | None:
    if not PARAMETER_NAME.fullmatch(entry.key) or entry.key == "tool_call":
        advice = "write letters, digits and `_`, at most 64, no digit first; `tool_call` is taken"
        reader.fault("type", f"`{spelled}` can't be the name of a parameter", entry.at, advice)
        return None
    if not isinstance(entry.value, Mapping):
        reader.wrong_type(spelled, entry.value, "a map: `{type: string, arg: 1}`")
        return None
    schema: dict[str, Any] = {}
    own: dict[str, Entry] = {}
    for one in entry.value:
        truth = isinstance(one.value, Scalar) and isinstance(one.value.value, bool)
        if one.key in OWN_KEYS and (one.key != "required" or truth):
            own[one.key] = one
        elif one.key in SCHEMA_KEYS:
            schema[one.key] = plain(one.value)
        else:
            _unknown(reader, one, spelled, (*OWN_KEYS, *SCHEMA_KEYS))
    schema.setdefault("type", "string")
    _check_schema(schema, reader, entry, spelled)
    return _own(entry, schema, own, reader, spelled)


def _own(
    entry: Entry, schema: dict[str, Any], own: dict[str, Entry], reader: Reader, spelled: str
) -> DeclaredParameter:
    kind = schema["type"]
    optional = "default" in schema or kind == "boolean"
    arg = _arg(own.get("arg"), reader, spelled)
    needed = reader.truth(f"{spelled}.required", own["required"].value) if "required" in own else not optional
    repeat = reader.truth(f"{spelled}.repeat", own["repeat"].value) if "repeat" in own else False
    off = reader.text(f"{spelled}.false_arg", own["false_arg"].value) if "false_arg" in own else None
    access = None
    if "access" in own:
        access = reader.word(f"{spelled}.access", own["access"].value, ("read", "write"))
        items = schema.get("items")
        strings = kind == "string" or (
            kind == "array" and isinstance(items, dict) and items.get("type") == "string"
        )
        if not strings:
            reader.fault(
                "type",
                f"`{spelled}` has an `access` and is no path",
                own["access"].at,
                "write `type: string`",
            )
    if repeat and kind != "array":
        reader.fault(
            "type", f"`{spelled}` has `repeat` and is no list", own["repeat"].at, "write `type: array`"
        )
    if off is not None and (kind != "boolean" or not _FLAG.fullmatch(off)):
        reader.fault(
            "type",
            f"`{spelled}.false_arg` is the flag for false of a boolean",
            own["false_arg"].at,
            "write `false_arg: --no-x`",
        )
    return DeclaredParameter(
        entry.key,
        schema,
        entry.at,
        required=bool(needed),
        arg=arg,
        repeat=bool(repeat),
        false_arg=off,
        access=access,
    )


def _arg(entry: Entry | None, reader: Reader, spelled: str) -> int | str | None:
    value = entry.value.value if entry is not None and isinstance(entry.value, Scalar) else None
    if entry is None:
        return None
    position = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if position or (isinstance(value, str) and (value == "stdin" or _FLAG.fullmatch(value))):
        assert isinstance(value, int | str)  # noqa: S101 - for mypy
        return value
    reader.wrong_type(
        f"{spelled}.arg", entry.value, "a position from 1, a flag such as `--pages`, or `stdin`"
    )
    return None


def _check_words(made: list[DeclaredParameter], reader: Reader) -> None:
    """Note two parameters that would be the same word, and positions with a gap."""
    seen: dict[int | str, DeclaredParameter] = {}
    for one in made:
        word = one.arg if one.arg is not None else f"--{one.name.replace('_', '-')}"
        key = word.removesuffix("=") if isinstance(word, str) else word
        if key != "stdin" and key in seen:
            reader.fault(
                "type",
                f"`{one.name}` and `{seen[key].name}` are both given as `{key}`",
                one.at,
                "give each its own",
            )
        seen.setdefault(key, one)
    positions = sorted(key for key in seen if isinstance(key, int))
    if positions and positions != list(range(1, len(positions) + 1)):
        last = seen[positions[-1]]
        reader.fault(
            "type", f"positions have a gap before {positions[-1]}", last.at, "count them from 1 without a gap"
        )


def _check_schema(schema: dict[str, Any], reader: Reader, entry: Entry, spelled: str) -> None:
    for key in _keys_of(schema):
        if key not in SCHEMA_KEYS:
            reader.fault(
                "type", f"`{spelled}` uses `{key}`, which is not read here", entry.value.at, "leave it out"
            )
            return
    if not isinstance(schema["type"], str) or schema["type"] not in _TYPES:
        reader.fault(
            "type",
            f"`{spelled}.type` is no type of JSON Schema",
            entry.value.at,
            "write one of " + ", ".join(_TYPES),
        )
        schema["type"] = "string"
        return
    if _longest(schema) > _MOST_ITEMS:
        reader.fault(
            "type", f"`{spelled}` has a list of over {_MOST_ITEMS} items", entry.value.at, "list fewer"
        )
        return
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - heavy; most skills declare no parameters

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as wrong:
        place = "".join(f".{part}" for part in wrong.absolute_path)
        reader.fault(
            "type",
            f"`{spelled}{place}` is no JSON Schema: {wrong.message[:200]}",
            entry.value.at,
            "see json-schema.org",
        )
    except (RecursionError, OverflowError):  # of `pattern`, which is compiled to see whether it is one
        reader.fault("type", f"`{spelled}.pattern` can't be read", entry.value.at, "write a shorter one")


def _longest(value: Any) -> int:
    """Return the length of the longest list in a value: that none of its items comes twice may be compared one by one."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = len(value) if isinstance(value, list) else 0
    return max((own, *map(_longest, inner)))


def _keys_of(schema: Any) -> Iterator[str]:
    """Yield every keyword of a schema, those of inner schemas too."""
    if not isinstance(schema, dict):
        return
    yield from schema
    inner: list[Any] = [schema.get("items"), schema.get("additionalProperties")]
    for key in ("prefixItems", "anyOf", "oneOf", "allOf"):
        inner += schema[key] if isinstance(schema.get(key), list) else []
    properties = schema.get("properties")
    inner += properties.values() if isinstance(properties, dict) else []
    for one in inner:
        yield from _keys_of(one)


def plain(node: Node) -> Any:
    """Return a node of the strict tree as JSON data."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Items):
        return [plain(item) for item in node]
    return {entry.key: plain(entry.value) for entry in node}


def accesses(entries: Iterable[ScriptEntry]) -> Iterator[tuple[str, DeclaredParameter]]:
    """Yield every parameter that gives access to what it names, with the script it belongs to."""
    for entry in entries:
        for one in entry.parameters or ():
            if one.access is not None:
                yield entry.name, one
        for script, one in accesses(entry.subcommands):
            yield f"{entry.name} {script}", one
