"""MCP: tools and results of the Model Context Protocol, as its types have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillrun.tools.formats.base import encoded, listed, merged, options_for, plain, portable
from skillrun.tools.outcome import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.tools.box import Turn
    from skillrun.tools.outcome import Outcome


class Mcp:
    """Definitions, calls and results of MCP. A client searches by itself, so nothing is deferred."""

    def definitions(
        self,
        turn: Turn,
        *,
        strict: bool = False,  # noqa: ARG002 - every format's signature
        native_search: bool = True,  # noqa: ARG002 - every format's signature
    ) -> list[dict[str, Any]]:
        """Return the tools of `tools/list`, in a stable order."""
        made = []
        for tool in listed(turn, native=True):
            one: dict[str, Any] = {
                "name": tool.full_name,
                "description": tool.about,
                "inputSchema": portable(tool.input_schema),
            }
            if tool.output_schema is not None:
                one["outputSchema"] = dict(tool.output_schema)
            if tool.annotations:
                one["annotations"] = dict(tool.annotations)
            made.append(merged(one, options_for(tool, "mcp")))
        return made

    def calls(self, reply: Any) -> list[ToolCall]:
        """Return the call of `tools/call` parameters."""
        found = plain(reply)
        return [ToolCall(found["name"], found.get("arguments"))]

    def results(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return a result for each call; every failure has `isError`."""
        return [_result(one) for one in outcomes]


def _result(outcome: Outcome) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": outcome.text}]
    for one in outcome.attachments:
        if one.media_type.startswith("image/"):
            content.append({"type": "image", "data": encoded(one), "mimeType": one.media_type})
        else:
            resource = {"uri": f"attachment:{len(content)}", "mimeType": one.media_type, "blob": encoded(one)}
            content.append({"type": "resource", "resource": resource})
    made: dict[str, Any] = {"content": content, "isError": outcome.is_error}
    # Until 2025-11-25 structured content was an object, and a client must be able to check it against a schema.
    if isinstance(outcome.structured, dict) and not outcome.is_error:
        made["structuredContent"] = outcome.structured
    return made
