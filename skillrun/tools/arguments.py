"""Arguments: what a model sent, brought to the types of the schema where nothing is lost, and checked.

Everything that is wrong is told at once, so that the model can mend it in one go.
"""

from __future__ import annotations

import contextvars
import difflib
import functools
import itertools
import json
import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from jsonschema.protocols import Validator

_MOST_PROBLEMS: Final = 10
_DEEPEST: Final = 50
_LONGEST_SHOWN: Final = 80
_MOST_FOLLOWED: Final = 20_000  # references, in the check of one call
_followed: contextvars.ContextVar[Iterator[int]] = contextvars.ContextVar("references followed")
# Told to the model and not checked here: a skill's own pattern could take for ever to match (a stranger's
# regular expression on a stranger's text), and the script checks its values itself.
UNCHECKED: Final = frozenset({"pattern", "patternProperties", "format"})


class ArgumentsError(ValueError):
    """Arguments that do not fit; the message names every problem."""


def check(arguments: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as the schema wants them. Raises ArgumentsError with all that is wrong."""
    given = _as_map(arguments)
    fitted = {name: coerce(value, schema["properties"].get(name, {})) for name, value in given.items()}
    # A null for what may be left out is how some models, and strict modes, leave it out.
    required = schema.get("required", ())
    fitted = {
        name: value
        for name, value in fitted.items()
        if value is not None
        or name in required
        or name not in schema["properties"]
        or _takes_null(schema["properties"][name])
    }
    try:
        problems = list(_problems(fitted, schema))
    except (
        Exception
    ) as broken:  # a schema whose references lead nowhere, or back to themselves; nothing is called then
        raise ArgumentsError(
            "invalid arguments: the tool's own schema can't be used to check them"
        ) from broken
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        listed = "; ".join(problems[:_MOST_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
        raise ArgumentsError(f"invalid arguments: {listed}")
    return fitted


def _as_map(arguments: Any) -> dict[str, Any]:
    """Return arguments as a map; None and empty text are none, text is read as JSON as some clients send it."""
    if isinstance(arguments, str) and arguments.strip():
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise ArgumentsError("invalid arguments: they are no JSON") from None
    if not arguments and (arguments is None or isinstance(arguments, str)):
        return {}
    if not isinstance(arguments, dict):
        raise ArgumentsError("invalid arguments: they must be a JSON object")
    if _depth(arguments) > _DEEPEST:
        raise ArgumentsError(f"invalid arguments: they are nested deeper than {_DEEPEST}")
    return {str(name): value for name, value in arguments.items()}


def _depth(value: Any, depth: int = 0) -> int:
    if depth > _DEEPEST or not isinstance(value, dict | list):
        return depth
    inner = value.values() if isinstance(value, dict) else value
    return max((_depth(one, depth + 1) for one in inner), default=depth)


def coerce(value: Any, schema: Any) -> Any:
    """Return a value as the type that a schema names where nothing is lost by it, else as it is."""
    if not isinstance(schema, dict):
        return value
    kind = schema.get("type")
    if isinstance(value, list) and kind == "array":
        return [coerce(item, schema.get("items")) for item in value]
    if isinstance(value, dict) and isinstance(schema.get("properties"), dict):
        return _without_nulls(value, schema)
    convert = _CONVERSIONS.get(kind) if isinstance(kind, str) else None
    if convert is None or value is None:
        return value
    fitted = convert(value)
    return (
        coerce(fitted, schema)
        if kind == "array" and fitted is not value and isinstance(fitted, list)
        else fitted
    )


def _without_nulls(value: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Coerce what is in a map; a null for what may be left out is left out, as at the top."""
    inner, required = schema["properties"], schema.get("required", ())
    return {
        name: coerce(item, inner.get(name))
        for name, item in value.items()
        if item is not None or name in required or name not in inner or _takes_null(inner[name])
    }


def _to_integer(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if (
        isinstance(value, str)
        and len(value) < _LONGEST_SHOWN
        and value.lstrip("-").isdecimal()
        and value.isascii()
    ):
        number = int(value) if value.count("-") <= 1 else None
        return number if number is not None and str(number) == value else value
    return value


def _to_number(value: Any) -> Any:
    whole = _to_integer(value) if isinstance(value, str) else value
    if whole is not value or not isinstance(value, str) or len(value) > _LONGEST_SHOWN:
        return whole
    try:
        number = float(value)
    except ValueError:
        return value
    return number if math.isfinite(number) and repr(number) == value else value


def _to_boolean(value: Any) -> Any:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _to_string(value: Any) -> Any:
    """Write a number or a truth as JSON does; a list or a map is no text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return json.dumps(value) if finite else value


def _to_array(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("["):
        read = _read(value)
        return read if isinstance(read, list) else [value]
    return [value] if isinstance(value, str | int | float) else value


def _to_object(value: Any) -> Any:
    read = _read(value) if isinstance(value, str) else value
    return read if isinstance(read, dict) else value


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


_CONVERSIONS: Final = {
    "integer": _to_integer, "number": _to_number, "boolean": _to_boolean, "string": _to_string,
    "array": _to_array, "object": _to_object,
}  # fmt: skip


def _takes_null(schema: Any) -> bool:
    kind = schema.get("type") if isinstance(schema, dict) else None
    inner = (schema.get("anyOf") or schema.get("oneOf") or ()) if isinstance(schema, dict) else ()
    return (
        kind == "null"
        or (isinstance(kind, list) and "null" in kind)
        or any(_takes_null(one) for one in inner)
    )


def _problems(arguments: dict[str, Any], schema: Mapping[str, Any]) -> Iterable[str]:
    known = list(schema["properties"])
    if schema.get("additionalProperties") is False:
        for count, name in enumerate(one for one in arguments if one not in schema["properties"]):
            if count >= _MOST_PROBLEMS:
                yield "there is no such argument"
            else:
                near = difflib.get_close_matches(name[:_LONGEST_SHOWN], known, n=1)
                advice = f", did you mean `{near[0]}`?" if near else f"; it takes {_listed(known)}"
                yield f"there is no argument `{name[:_LONGEST_SHOWN]}`{advice}"
    for name in schema.get("required", ()):
        if name not in arguments:
            yield f"`{name}` is missing"
    validator = _validator(json.dumps(unpatterned(schema)))
    _followed.set(itertools.count())
    for wrong in sorted(
        validator.iter_errors(arguments), key=lambda one: [str(part) for part in one.absolute_path]
    ):
        if wrong.absolute_path:
            place = "".join(
                f"[{part}]" if isinstance(part, int) else f".{part}" for part in wrong.absolute_path
            )
            yield f"`{place.lstrip('.')}` {_reason(wrong)}"
        elif wrong.validator not in {"required", "additionalProperties"}:
            yield f"the arguments {_reason(wrong)}"


def _reason(wrong: Any) -> str:
    shown = json.dumps(wrong.instance, ensure_ascii=False, default=str)
    shown = shown if len(shown) <= _LONGEST_SHOWN else shown[:_LONGEST_SHOWN] + "…"
    match wrong.validator:
        case "type":
            kinds = (
                wrong.validator_value if isinstance(wrong.validator_value, list) else [wrong.validator_value]
            )
            return f"must be {' or '.join(kinds)}, not {shown}"
        case "enum":
            return f"must be one of {_listed([json.dumps(one, ensure_ascii=False) for one in wrong.validator_value], '')}, not {shown}"
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            word = {
                "minimum": "at least",
                "maximum": "at most",
                "exclusiveMinimum": "above",
                "exclusiveMaximum": "below",
            }
            return f"must be {word[wrong.validator]} {wrong.validator_value}, not {shown}"
        case "minItems" | "maxItems":
            return f"must have at {wrong.validator[:3].replace('min', 'least').replace('max', 'most')} {wrong.validator_value} items"
        case "anyOf" | "oneOf":
            return f"fits none of what it may be: {shown}"
    return str(wrong.message)[:200]


def _listed(names: Iterable[str], quote: str = "`") -> str:
    names = list(names)
    shown = ", ".join(f"{quote}{name}{quote}" for name in names[:20])
    return (shown + (", …" if len(names) > 20 else "")) or "none"  # noqa: PLR2004 - a line's worth


def unpatterned(schema: Any) -> Any:
    """Return a schema without what is not checked here."""
    if isinstance(schema, list):
        return [unpatterned(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    # `properties` maps names, and a property may be called `pattern`.
    return {
        key: {name: unpatterned(one) for name, one in value.items()}
        if key in {"properties", "$defs"}
        else unpatterned(value)
        for key, value in schema.items()
        if key not in UNCHECKED
    }


@functools.lru_cache(maxsize=512)
def _validator(schema: str) -> Validator:
    """Make a validator. It looks nothing up: a schema that refers to something outside of itself makes no tool."""
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - heavy, and needed only once a tool is called

    follow = {key: _bounded(Draft202012Validator.VALIDATORS[key]) for key in ("$ref", "$dynamicRef")}
    extend: Callable[..., Callable[..., Validator]] = validators.extend
    return extend(Draft202012Validator, follow)(json.loads(schema))


def _bounded(follow: Callable[..., Iterable[Any]]) -> Callable[..., Iterable[Any]]:
    """Follow references, but not for ever: definitions that name each other twice take time without end."""

    def followed(*words: Any) -> Iterable[Any]:
        if next(_followed.get()) > _MOST_FOLLOWED:
            raise RecursionError
        yield from follow(*words)

    return followed
