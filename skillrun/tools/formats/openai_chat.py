"""OpenAI Chat Completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillrun.tools.formats.base import encoded, images, listed, merged, options_for, plain, portable
from skillrun.tools.formats.strict import openai_strict
from skillrun.tools.outcome import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.tools.box import Turn
    from skillrun.tools.outcome import Outcome


class OpenAIChat:
    """Definitions, calls and results of Chat Completions. It has no search: deferred tools are found by ours."""

    def definitions(
        self,
        turn: Turn,
        *,
        strict: bool = False,
        native_search: bool = True,  # noqa: ARG002 - every format's signature
    ) -> list[dict[str, Any]]:
        """Return the entries of `tools`."""
        made = []
        for tool in listed(turn, native=False):
            schema = portable(tool.input_schema)
            tight = openai_strict(schema) if strict else None
            function = {
                "name": tool.full_name,
                "description": tool.about,
                "parameters": tight or schema,
                "strict": tight is not None,
            }
            made.append({"type": "function", "function": merged(function, options_for(tool, "openai"))})
        return made

    def calls(self, reply: Any) -> list[ToolCall]:
        """Return the calls of the first choice; arguments that are no JSON stay text, and the check says so."""
        choices = plain(reply).get("choices") or [{}]
        found = (choices[0].get("message") or {}).get("tool_calls") or []
        named = [
            (one.get("function") or {}, one.get("id") or "") for one in found
        ]  # some servers give no ids
        return [
            ToolCall(function.get("name") or "", function.get("arguments"), own) for function, own in named
        ]

    def results(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return a tool message for every call, then one user message with all images: tool messages take text only."""
        messages: list[dict[str, Any]] = [
            {"role": "tool", "tool_call_id": one.call.id if one.call is not None else "", "content": one.text}
            for one in outcomes
        ]
        pictures = [
            {"type": "image_url", "image_url": {"url": f"data:{one.media_type};base64,{encoded(one)}"}}
            for outcome in outcomes
            for one in images(outcome)
        ]
        return [*messages, {"role": "user", "content": pictures}] if pictures else messages
