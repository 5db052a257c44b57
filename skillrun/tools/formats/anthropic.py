"""Anthropic: the Messages API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.formats.base import encoded, images, listed, merged, options_for, plain, portable
from skillrun.tools.formats.strict import AnthropicBudget
from skillrun.tools.outcome import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.tools.box import Turn
    from skillrun.tools.outcome import Outcome

SEARCH: Final = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}


class Anthropic:
    """Definitions, calls and results of the Messages API."""

    def definitions(
        self, turn: Turn, *, strict: bool = False, native_search: bool = True
    ) -> list[dict[str, Any]]:
        """Return the entries of `tools`; deferred ones carry `defer_loading`, and the provider's search stands first."""
        tools = listed(turn, native=native_search)
        budget = AnthropicBudget()
        made: list[dict[str, Any]] = []
        if native_search and any(tool.defer for tool in tools):
            made.append(dict(SEARCH))
        for tool in tools:
            schema = portable(tool.input_schema)
            one: dict[str, Any] = {"name": tool.full_name, "description": tool.about, "input_schema": schema}
            tight = budget.take(schema) if strict else None
            if tight is not None:
                one |= {"input_schema": tight, "strict": True}
            if native_search and tool.defer:
                one["defer_loading"] = True
            made.append(merged(one, options_for(tool, "anthropic")))
        return made

    def calls(self, reply: Any) -> list[ToolCall]:
        """Return the `tool_use` blocks of a message."""
        blocks = plain(reply).get("content") or []
        return [
            ToolCall(one["name"], one.get("input"), one.get("id") or "")
            for one in blocks
            if one.get("type") == "tool_use"
        ]

    def results(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return one user message with a `tool_result` for every call, as the API demands."""
        blocks = [_result(one) for one in outcomes]
        return [{"role": "user", "content": blocks}] if blocks else []


def _result(outcome: Outcome) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": outcome.text}]
    for one in images(outcome):
        source = {"type": "base64", "media_type": one.media_type, "data": encoded(one)}
        content.append({"type": "image", "source": source})
    call = outcome.call
    return {
        "type": "tool_result",
        "tool_use_id": call.id if call is not None else "",
        "content": content,
        "is_error": outcome.is_error,
    }
