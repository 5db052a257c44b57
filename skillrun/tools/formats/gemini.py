"""Gemini: function declarations with plain JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillrun.tools.formats.base import encoded, images, listed, merged, options_for, plain, portable
from skillrun.tools.outcome import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.tools.box import Turn
    from skillrun.tools.outcome import Outcome


class Gemini:
    """Definitions, calls and results of the Gemini API. It has neither a strict mode nor a search of tools."""

    def definitions(
        self,
        turn: Turn,
        *,
        strict: bool = False,  # noqa: ARG002 - every format's signature
        native_search: bool = True,  # noqa: ARG002 - every format's signature
    ) -> list[dict[str, Any]]:
        """Return one tool with all declarations; none for no tools, since an empty list is refused by the API.

        `parametersJsonSchema` takes plain JSON Schema; `parameters` would refuse `additionalProperties`.
        """
        declarations = [
            merged(
                {
                    "name": tool.full_name,
                    "description": tool.about,
                    "parametersJsonSchema": portable(tool.input_schema),
                },
                options_for(tool, "gemini"),
            )
            for tool in listed(turn, native=False)
        ]
        return [{"functionDeclarations": declarations}] if declarations else []

    def calls(self, reply: Any) -> list[ToolCall]:
        """Return the function calls of the first candidate."""
        candidates = plain(reply).get("candidates") or [{}]
        parts = (candidates[0].get("content") or {}).get("parts") or []
        found = [one.get("functionCall") or one.get("function_call") for one in parts]
        return [ToolCall(one["name"], one.get("args"), one.get("id") or "") for one in found if one]

    def results(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return one content with as many responses as there were calls, then the images."""
        parts: list[dict[str, Any]] = [{"functionResponse": _response(one)} for one in outcomes]
        parts += [
            {"inlineData": {"mimeType": one.media_type, "data": encoded(one)}}
            for outcome in outcomes
            for one in images(outcome)
        ]
        return [{"role": "user", "parts": parts}] if parts else []


def _response(outcome: Outcome) -> dict[str, Any]:
    call = outcome.call
    made: dict[str, Any] = {"name": call.name if call is not None else ""}
    if call is not None and call.id:
        made["id"] = call.id
    made["response"] = {"error" if outcome.is_error else "output": outcome.text}
    return made
