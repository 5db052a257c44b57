"""Definitions: tools as `tools/list` tells them, in an order and in pages that do not change by themselves."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from skillrun.mcp.results import OUTPUT_SCHEMA
from skillrun.report.document import clean
from skillrun.tools.formats.base import portable
from skillrun.tools.script_tool import ScriptTool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.tools.tool import Tool

PAGE: Final = 64
"""Tools of one page."""


def definition(tool: Tool) -> types.Tool:
    """Return one tool. Its text comes from a skill, and is data: JSON carries it, the client shows it."""
    script = isinstance(tool, ScriptTool)
    output = OUTPUT_SCHEMA if script else tool.output_schema
    hints = types.ToolAnnotations.model_validate({**tool.annotations}) if tool.annotations else None
    return types.Tool(
        name=tool.full_name,
        title=clean(_title(tool)) if isinstance(tool, ScriptTool) else None,
        description=clean(tool.about),
        input_schema=clean(portable(tool.input_schema)),
        output_schema=None if output is None else dict(output),
        annotations=hints,
    )


def page(tools: Sequence[Tool], cursor: str | None, size: int = PAGE) -> tuple[list[Tool], str | None]:
    """Return a page of tools in the order of their names, and the cursor of the next one.

    The cursor holds the last name, so a list that grows or shrinks between two pages shifts nothing. Raises
    MCPError for a cursor that is none of ours.
    """
    ordered = sorted(tools, key=lambda tool: tool.full_name)
    names = [tool.full_name for tool in ordered]
    start = 0 if cursor is None else bisect_right(names, _read(cursor))
    found = ordered[start : start + size]
    more = start + size < len(ordered)
    return found, _written(found[-1].full_name) if more else None


def _title(tool: ScriptTool) -> str:
    subject = tool.subject
    words = [subject.skill.name or subject.skill.key or subject.skill.path.name]
    stem = subject.script.name.rsplit(".", 1)[0] or subject.script.name
    return f"{words[0]}: {' '.join((stem, *subject.interface.subcommand))}"


def _written(name: str) -> str:
    return base64.urlsafe_b64encode(f"after:{name}".encode()).decode()


def _read(cursor: str) -> str:
    try:
        text = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    if not text.startswith("after:"):
        raise MCPError(types.INVALID_PARAMS, "Invalid cursor")
    return text.removeprefix("after:")
