"""OpenAI Responses: functions in namespaces, and a search of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.formats.base import encoded, images, listed, merged, options_for, plain, portable
from skillrun.tools.formats.strict import openai_strict
from skillrun.tools.outcome import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.tools.box import Turn
    from skillrun.tools.outcome import Outcome
    from skillrun.tools.tool import Tool

SEARCH: Final = {"type": "tool_search", "execution": "server"}


class OpenAIResponses:
    """Definitions, calls and results of the Responses API."""

    def definitions(
        self, turn: Turn, *, strict: bool = False, native_search: bool = True
    ) -> list[dict[str, Any]]:
        """Return the entries of `tools`: a namespace where its first tool stands, functions without one by themselves."""
        tools = listed(turn, native=native_search)
        made: list[dict[str, Any]] = []
        spaces: dict[str, dict[str, Any]] = {}
        for tool in tools:
            function = _function(tool, strict=strict, native_search=native_search)
            if tool.namespace is None:
                made.append(function)
                continue
            if tool.namespace not in spaces:
                spaces[tool.namespace] = {
                    "type": "namespace",
                    "name": tool.namespace,
                    "description": tool.namespace_description,
                    "tools": [],
                }
                made.append(spaces[tool.namespace])
            spaces[tool.namespace]["tools"].append(function)
        if native_search and any(tool.defer for tool in tools):
            made.append(dict(SEARCH))
        return made

    def calls(self, reply: Any) -> list[ToolCall]:
        """Return the `function_call` items of a response."""
        found = [one for one in plain(reply).get("output") or [] if one.get("type") == "function_call"]
        return [
            ToolCall(one["name"], one.get("arguments"), one.get("call_id") or "", one.get("namespace"))
            for one in found
        ]

    def results(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return a `function_call_output` for every call."""
        return [_output(one) for one in outcomes]


def _function(tool: Tool, *, strict: bool, native_search: bool) -> dict[str, Any]:
    schema = portable(tool.input_schema)
    tight = openai_strict(schema) if strict else None
    function: dict[str, Any] = {
        "type": "function",
        "name": tool.name,
        "description": tool.about,
        "parameters": tight or schema,
        "strict": tight is not None,  # left out, the API would try strict and change what it means
    }
    if native_search and tool.defer:
        function["defer_loading"] = True
    return merged(function, options_for(tool, "openai-responses"))


def _output(outcome: Outcome) -> dict[str, Any]:
    pictures = [
        {"type": "input_image", "image_url": f"data:{one.media_type};base64,{encoded(one)}", "detail": "auto"}
        for one in images(outcome)
    ]
    text = {"type": "input_text", "text": outcome.text}
    return {
        "type": "function_call_output",
        "call_id": outcome.call.id if outcome.call is not None else "",
        "output": [text, *pictures] if pictures else outcome.text,
    }
