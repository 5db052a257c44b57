"""Strict: schemas for the modes in which a provider makes the model's arguments fit, within its documented budgets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

_DEEPEST: Final = 5  # levels; OpenAI's guide says 10, and older models still enforce 5 (facts/mcp 3)
_MOST_PROPERTIES: Final = 100  # of one schema; OpenAI says 5,000, and older models still enforce 100
_MOST_ENUM: Final = 500
_MOST_CHARACTERS: Final = 120_000
_KEPT: Final = frozenset({"type", "description", "enum", "const", "items", "properties", "anyOf", "title"})
_DROPPED: Final = frozenset({
    "default", "examples", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
    "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "required", "additionalProperties",
})  # fmt: skip
"""Keywords that the strict modes do not take. Leaving them out loses nothing: the arguments are checked here as well."""


class _NotStrictError(Exception):
    """A schema that no strict mode takes."""


@dataclass(slots=True)
class Counts:
    """What one schema takes of a budget."""

    properties: int = 0
    optional: int = 0
    unions: int = 0
    values: int = 0


def openai_strict(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return a schema for OpenAI's strict mode, None where it can't be one: every property is required, optional ones may be null."""
    counts = Counts()
    try:
        made = _strict(schema, counts, 0, nullable=True)
    except _NotStrictError:
        return None
    large = counts.properties > _MOST_PROPERTIES or counts.values > _MOST_ENUM
    return None if large or len(json.dumps(made)) > _MOST_CHARACTERS else made


@dataclass(slots=True)
class AnthropicBudget:
    """What Anthropic allows for all strict tools of a request together (facts/mcp 3)."""

    tools: int = 20
    optional: int = 24
    unions: int = 16

    def take(self, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Return a strict schema and take it off the budget; None where it can't be one or the budget is spent."""
        counts = Counts()
        try:
            made = _strict(schema, counts, 0, nullable=False)
        except _NotStrictError:
            return None
        if self.tools < 1 or counts.optional > self.optional or counts.unions > self.unions:
            return None
        self.tools -= 1
        self.optional -= counts.optional
        self.unions -= counts.unions
        return made


def _strict(schema: Any, counts: Counts, depth: int, *, nullable: bool) -> dict[str, Any]:
    if not isinstance(schema, dict) or depth > _DEEPEST or not schema:
        raise _NotStrictError
    if any(key not in _KEPT | _DROPPED for key in schema):
        raise _NotStrictError
    made = {
        key: value
        for key, value in schema.items()
        if key in {"type", "description", "enum", "const", "title"}
    }
    if "default" in schema:  # no strict mode takes the keyword, and the model should know what is left out
        made["description"] = f"{made.get('description', '')} (default: {schema['default']})".strip()
    if isinstance(made.get("type"), list):
        counts.unions += 1
        if {"array", "object"} & set(made["type"]):  # what is in them would be left open
            raise _NotStrictError
    counts.values += len(schema.get("enum", ()))
    if "anyOf" in schema:
        counts.unions += 1
        made["anyOf"] = [_strict(one, counts, depth + 1, nullable=nullable) for one in schema["anyOf"]]
    if schema.get("type") == "array":
        made["items"] = _strict(schema.get("items"), counts, depth + 1, nullable=nullable)
    if schema.get("type") == "object":
        made |= _object(schema, counts, depth, nullable=nullable)
    if not made.keys() & {"type", "anyOf", "enum", "const"}:
        raise _NotStrictError
    return made


def _object(schema: dict[str, Any], counts: Counts, depth: int, *, nullable: bool) -> dict[str, Any]:
    """Close an object. One that takes any key can't be closed."""
    if schema.get("additionalProperties", False) is not False or "properties" not in schema:
        raise _NotStrictError
    required = schema.get("required", [])
    properties: dict[str, Any] = {}
    for name, one in schema["properties"].items():
        counts.properties += 1
        inner = _strict(one, counts, depth + 1, nullable=nullable)
        if name not in required:
            counts.optional += 1
            inner = _or_null(inner) if nullable else inner
        properties[name] = inner
    names = list(properties) if nullable else list(required)
    return {"properties": properties, "required": names, "additionalProperties": False}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "type" not in schema or "const" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    made = {**schema, "type": list(dict.fromkeys((*kinds, "null")))}
    if "enum" in schema and None not in schema["enum"]:
        made["enum"] = [*schema["enum"], None]
    return made
