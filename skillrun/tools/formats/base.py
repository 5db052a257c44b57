"""Base: what every format answers, and what they share."""

from __future__ import annotations

import base64
import copy
import itertools
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillrun.tools.box import Turn
    from skillrun.tools.outcome import Attachment, Outcome, ToolCall
    from skillrun.tools.tool import Tool

PROVIDERS: Final = ("anthropic", "openai", "openai-responses", "gemini", "mcp")
IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Kinds of images that Anthropic, OpenAI and Gemini all read."""
_DEEPEST: Final = 30
_MOST: Final = 10_000
"""Parts of a schema that is written out: ten definitions that each name the next one twice would be a thousand, thirty no memory."""


class Format(Protocol):
    """The words of one provider."""

    def definitions(
        self, turn: Turn, *, strict: bool = False, native_search: bool = True
    ) -> list[dict[str, Any]]:
        """Return the definitions of a turn's tools, in a stable order.

        `strict` asks for the strict mode where the schema allows it and the provider's budget lasts.
        `native_search` marks deferred tools for the provider's own search where it has one.
        """

    def calls(self, reply: Any) -> list[ToolCall]:
        """Return the calls in a reply of the SDK, or the same as plain data."""

    def results(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return the messages that answer all calls of one reply."""


def listed(turn: Turn, *, native: bool) -> list[Tool]:
    """Return the tools to define: with a native search all of them, and ours is not needed."""
    return list(turn.tools if native else turn.listed)


def options_for(tool: Tool, provider: str) -> dict[str, Any]:
    """Return the provider options of a tool: those for all, and those under this provider's name."""
    options = tool.options
    own = options.get(provider, {})
    shared = {key: value for key, value in options.items() if key not in PROVIDERS}
    return {**shared, **(own if isinstance(own, dict) else {})}


def merged(definition: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Merge options into a definition as they stand."""
    return {**definition, **options}


def portable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its own references written out: several APIs follow none. One that contains itself, or would be too large, keeps them."""
    definitions = {
        f"#/{key}/{name}": one
        for key in ("$defs", "definitions")
        for name, one in schema.get(key, {}).items()
    }
    if not definitions:
        return copy.deepcopy(schema)
    try:
        made = _inlined(schema, definitions, 0, itertools.count())
    except RecursionError:
        return copy.deepcopy(schema)
    return {key: value for key, value in made.items() if key not in {"$defs", "definitions"}}


def _inlined(value: Any, definitions: dict[str, Any], depth: int, parts: Iterator[int]) -> Any:
    if depth > _DEEPEST or next(parts) > _MOST:
        raise RecursionError
    if isinstance(value, list):
        return [_inlined(one, definitions, depth + 1, parts) for one in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    target = definitions.get(reference) if isinstance(reference, str) else None
    if target is not None:
        return {
            **_inlined(target, definitions, depth + 1, parts),
            **{key: one for key, one in value.items() if key != "$ref"},
        }
    inner = {key: one for key, one in value.items() if key not in {"$defs", "definitions"}}
    return {key: _inlined(one, definitions, depth + 1, parts) for key, one in inner.items()}


def plain(reply: Any) -> Any:
    """Return a reply of an SDK as plain data."""
    dump = getattr(reply, "model_dump", None)
    return dump(mode="json", exclude_none=True) if callable(dump) else reply


def encoded(attachment: Attachment) -> str:
    """Return the bytes of a file as text."""
    return base64.b64encode(attachment.data).decode("ascii")


def images(outcome: Outcome) -> list[Attachment]:
    """Return the files of an outcome that a model can look at; an empty one is refused by every API."""
    return [one for one in outcome.attachments if one.media_type in IMAGES and one.data]
