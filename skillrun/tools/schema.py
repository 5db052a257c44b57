"""Schema: the JSON Schema of an in-process tool, from type hints, from explicit parameters, or given whole."""

from __future__ import annotations

import copy
import enum
import inspect
import json
import pathlib
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from skillrun.errors import UsageError
from skillrun.permissions.script_entries import PARAMETER_NAME
from skillrun.problem import error
from skillrun.tools.arguments import UNCHECKED

if TYPE_CHECKING:
    from skillrun.tools.outcome import ToolCall

RESERVED: Final = "tool_call"
"""The keyword by which a function gets the call; never part of a schema."""
Binder: TypeAlias = "Callable[[dict[str, Any], ToolCall], dict[str, Any]]"
NO_PARAMETERS: Final[dict[str, Any]] = {"type": "object", "properties": {}}
_DEEPEST: Final = 20
# At the root, every API takes an object and nothing else (facts/mcp 3).
_NOT_AT_ROOT: Final = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref")
_WORDS: Final = {
    "int": "integer", "integer": "integer", "float": "number", "double": "number", "number": "number",
    "bool": "boolean", "boolean": "boolean", "str": "string", "string": "string", "list": "array", "array": "array",
    "dict": "object", "object": "object", "null": "null",
}  # fmt: skip
_PLAIN: Final[dict[Any, dict[str, Any]]] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    dict: {"type": "object"}, list: {"type": "array", "items": {}}, type(None): {"type": "null"}, Any: {},
    pathlib.Path: {"type": "string"}, tuple: {"type": "array", "items": {}}, set: {"type": "array", "items": {}},
}  # fmt: skip


def checked_schema(
    parameters: Mapping[str, Any] | None, function: Callable[..., Any] | None, name: str
) -> tuple[dict[str, Any], Binder]:
    """Return the schema of a tool, and what turns checked arguments into the keywords of its function.

    Raises UsageError (`tool-definition`) for a schema that no model API takes, and for one that the function does not fit.
    """
    signature = _Signature.of(function, name) if function is not None else None
    if parameters is None:
        assert signature is not None  # noqa: S101 - a tool without a schema has a function
        return signature.schema(), signature.bind
    whole = isinstance(parameters.get("type"), str)
    schema = _whole(parameters, name) if whole else _explicit(parameters, name)
    if signature is not None:
        signature.check(schema)
        return schema, signature.bind_plain
    return schema, lambda arguments, _: arguments


def _whole(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Keep a schema that was given whole, every keyword of it."""
    schema = copy.deepcopy(dict(given))
    if schema["type"] != "object":
        raise _wrong(name, "its schema must have `type: object`")
    for key in _NOT_AT_ROOT:
        if key in schema:
            raise _wrong(
                name, f"its schema has `{key}` at the root, which no model API takes; put it into a property"
            )
    schema.setdefault("properties", {})
    schema.setdefault("required", [])
    schema.setdefault("additionalProperties", False)
    _check(schema, name)
    return schema


def _explicit(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Make a schema of parameters one by one; one is required unless it says `required: False` or has a default."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for key, value in given.items():
        if not isinstance(value, Mapping):
            raise _wrong(name, f"the parameter `{key}` is no map with `type` and `description`")
        one = copy.deepcopy(dict(value))
        needed = one.pop("required") if isinstance(one.get("required"), bool) else "default" not in one
        kind = one.get("type", "string")
        one["type"] = _WORDS.get(str(kind), kind) if isinstance(kind, str) else kind
        if one["type"] == "array":
            one.setdefault("items", {"type": "string"})
        properties[key] = one
        if needed:
            required.append(key)
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    _check(schema, name)
    return schema


def _check(schema: dict[str, Any], name: str) -> None:
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - heavy

    try:
        Draft202012Validator.check_schema(schema)
        json.dumps(schema, allow_nan=False)
    except SchemaError as wrong:
        place = ".".join(str(part) for part in wrong.absolute_path)
        raise _wrong(name, f"its schema is no JSON Schema at `{place}`: {wrong.message[:200]}") from None
    except (
        RecursionError,
        OverflowError,
        TypeError,
        ValueError,
    ):  # of a pattern, or of what is no JSON at all
        raise _wrong(
            name, "its schema can't be read: it is too deep, or has a value that is no JSON"
        ) from None
    for key in schema["properties"]:
        if not isinstance(key, str) or not PARAMETER_NAME.fullmatch(key) or key == RESERVED:
            raise _wrong(
                name, f"`{key}` can't be the name of a parameter: letters, digits, `_`, and not `{RESERVED}`"
            )
    for one in schema["required"]:
        if one not in schema["properties"]:
            raise _wrong(name, f"`{one}` is required and there is no such parameter")
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise _wrong(name, f"its schema refers to `{reference}`, and nothing is looked up outside of it")
        if not _leads(schema, reference):
            raise _wrong(name, f"its schema refers to `{reference}`, which is not in it")


def _leads(schema: Any, reference: str) -> bool:
    """Whether a reference leads somewhere: pointers are followed, names of anchors are left to the check of arguments."""
    if reference == "#" or not reference.startswith("#/"):
        return True
    here = schema
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(here, list):
            here = here[int(key)] if key.isdecimal() and int(key) < len(here) else None
        else:
            here = here.get(key) if isinstance(here, Mapping) and key not in UNCHECKED else None
        if here is None:
            return False
    return True


def _references(schema: Any) -> typing.Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in {"$ref", "$dynamicRef"} and isinstance(value, str):
                yield value
            yield from _references(value)
    elif isinstance(schema, list):
        for one in schema:
            yield from _references(one)


@dataclass(frozen=True)
class _Signature:
    """The keywords of a function, with their types."""

    name: str
    parameters: tuple[inspect.Parameter, ...]
    hints: dict[str, Any]
    texts: dict[str, str]

    @classmethod
    def of(cls, function: Callable[..., Any], name: str) -> _Signature:
        """Read a function's signature."""
        try:
            hints = typing.get_type_hints(function, include_extras=True)
        except (NameError, TypeError) as wrong:
            raise _wrong(
                name, f"its type hints can't be read: {wrong}; define the types at module level"
            ) from None
        found = tuple(inspect.signature(function).parameters.values())
        for one in found:
            if one.kind is one.POSITIONAL_ONLY:
                raise _wrong(name, f"`{one.name}` is positional only, and a model gives arguments by name")
        return cls(name, found, hints, _documented(inspect.getdoc(function) or ""))

    @property
    def own(self) -> list[inspect.Parameter]:
        """The parameters that a model gives."""
        kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        return [
            one for one in self.parameters if one.kind not in kinds and one.name not in {RESERVED, "self"}
        ]

    @property
    def open(self) -> bool:
        """Whether the function takes any keyword."""
        return any(one.kind is one.VAR_KEYWORD for one in self.parameters)

    def schema(self) -> dict[str, Any]:
        """Return the schema that the hints say; without a hint a parameter is a text."""
        properties, required = {}, []
        for one in self.own:
            made = schema_of(self.hints.get(one.name, str), self.name)
            if one.name in self.texts:
                made.setdefault("description", self.texts[one.name])
            if one.default is inspect.Parameter.empty:
                required.append(one.name)
            elif one.default is not None:
                made |= _default(one.default)
            properties[one.name] = made
        schema = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        _check(schema, self.name)
        return schema

    def check(self, schema: dict[str, Any]) -> None:
        """Raise UsageError when the function does not take what the schema offers, or wants what it does not."""
        known = {one.name for one in self.own}
        for key in schema["properties"]:
            if key not in known and not self.open:
                raise _wrong(self.name, f"its schema has `{key}`, and its function takes no such keyword")
        for one in self.own:
            if one.default is inspect.Parameter.empty and one.name not in schema["required"]:
                raise _wrong(
                    self.name, f"its function needs `{one.name}`, and its schema does not require it"
                )

    def bind(self, arguments: dict[str, Any], call: ToolCall) -> dict[str, Any]:
        """Return the keywords of a call, each as the type that its hint names."""
        typed = {key: converted(value, self.hints.get(key, str)) for key, value in arguments.items()}
        return self._with_call(typed, call)

    def bind_plain(self, arguments: dict[str, Any], call: ToolCall) -> dict[str, Any]:
        """Return the keywords of a call as they are: the schema is somebody's own, and so are the types."""
        return self._with_call(dict(arguments), call)

    def _with_call(self, keywords: dict[str, Any], call: ToolCall) -> dict[str, Any]:
        if any(one.name == RESERVED for one in self.parameters):
            keywords[RESERVED] = call
        return keywords


def schema_of(hint: Any, name: str, depth: int = 0) -> dict[str, Any]:  # noqa: PLR0911 - one return for each kind of type
    """Return the schema of a type hint. Raises UsageError for one that JSON has nothing for."""
    if depth > _DEEPEST:
        raise _wrong(name, "its types are nested too deep, or contain themselves")
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _of_values([member.value for member in hint], name)
    if isinstance(hint, type) and (is_dataclass(hint) or typing.is_typeddict(hint)):
        return _of_fields(hint, name, depth)
    if hint in _PLAIN:
        return copy.deepcopy(_PLAIN[hint])
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        text = next((one for one in inner[1:] if isinstance(one, str)), None)
        return schema_of(inner[0], name, depth + 1) | ({"description": text} if text else {})
    if origin is typing.Literal:
        return _of_values(list(inner), name)
    if origin in {typing.Union, types.UnionType}:
        return _of_union(inner, name, depth)
    return _of_container(hint, origin, inner, name, depth)


def _of_container(hint: Any, origin: Any, inner: tuple[Any, ...], name: str, depth: int) -> dict[str, Any]:
    if origin is tuple and not (len(inner) == 2 and inner[1] is Ellipsis):  # noqa: PLR2004 - `tuple[X, ...]`
        items = [schema_of(one, name, depth + 1) for one in inner]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1], name, depth + 1)}
    if isinstance(origin, type) and issubclass(origin, Sequence | set | frozenset | typing.Iterable):
        return {"type": "array", "items": schema_of(inner[0], name, depth + 1)}
    if origin in {typing.Required, typing.NotRequired} if hasattr(typing, "Required") else False:
        return schema_of(inner[0], name, depth + 1)
    raise _wrong(
        name,
        f"a model can't give a {getattr(hint, '__name__', hint)}; use plain types, or give the schema whole",
    )


def _of_union(inner: tuple[Any, ...], name: str, depth: int) -> dict[str, Any]:
    kinds = [one for one in inner if one is not type(None)]
    made = [schema_of(one, name, depth + 1) for one in kinds]
    if len(made) == 1:  # `X | None`: what may be left out; a null counts as left out
        return made[0]
    simple = [one["type"] for one in made if set(one) == {"type"}]
    return {"type": simple} if len(simple) == len(made) else {"anyOf": made}


def _of_values(values: list[Any], name: str) -> dict[str, Any]:
    for kind, word in ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number")):
        if values and all(type(value) is kind for value in values):
            return {"type": word, "enum": values}
    raise _wrong(name, "the values of an enumeration must all be texts, or all be numbers")


def _of_fields(hint: Any, name: str, depth: int) -> dict[str, Any]:
    hints = typing.get_type_hints(hint, include_extras=True)
    if is_dataclass(hint):
        own = [one for one in fields(hint) if one.init]
        required = [one.name for one in own if one.default is MISSING and one.default_factory is MISSING]
        properties = {one.name: schema_of(hints[one.name], name, depth + 1) for one in own}
        for one in own:
            if one.default is not MISSING and one.default is not None:
                properties[one.name] |= _default(one.default)
    else:
        properties = {key: schema_of(one, name, depth + 1) for key, one in hints.items()}
        required = [key for key in hints if key in hint.__required_keys__]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _default(value: Any) -> dict[str, Any]:
    if isinstance(value, enum.Enum):
        value = value.value
    return {"default": value} if isinstance(value, str | int | float | bool) else {}


def converted(value: Any, hint: Any, depth: int = 0) -> Any:  # noqa: PLR0911 - one return for each kind of type
    """Return a value that fits a hint's schema as the type that the hint names."""
    if depth > _DEEPEST:
        return value
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return converted(value, inner[0], depth + 1)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if hint is pathlib.Path:
        return pathlib.Path(value)
    if hint is float and isinstance(value, int):
        return float(value)
    if isinstance(hint, type) and is_dataclass(hint) and isinstance(value, dict):
        hints = typing.get_type_hints(hint, include_extras=True)
        return hint(**{key: converted(one, hints[key], depth + 1) for key, one in value.items()})
    if isinstance(value, list) and origin in {list, set, frozenset, tuple, Sequence} and inner:
        own = inner if origin is tuple and Ellipsis not in inner else (inner[0],) * len(value)
        made = [converted(one, kind, depth + 1) for one, kind in zip(value, own, strict=False)]
        return origin(made) if origin in {set, frozenset, tuple} else made
    if origin in {typing.Union, types.UnionType}:
        kinds = [one for one in inner if one is not type(None)]
        return converted(value, kinds[0], depth + 1) if len(kinds) == 1 and value is not None else value
    return value


def _documented(text: str) -> dict[str, str]:
    """Return what the part `Args:` of a docstring says about each parameter."""
    part = re.search(r"^(?:Args|Arguments|Parameters):\s*\n((?:[ \t]+.*\n?|\s*\n)+)", text, re.MULTILINE)
    if part is None:
        return {}
    found = re.finditer(r"^[ \t]+(\w+)(?: ?\([^)]*\))?: *(.+(?:\n[ \t]{6,}.+)*)", part[1], re.MULTILINE)
    return {match[1]: " ".join(match[2].split()) for match in found}


def _wrong(name: str, message: str) -> UsageError:
    return UsageError(error("tool-definition", f"the tool `{name}`: {message}"))
