"""Definitions: tools as `tools/list` tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mcp_types as types

from skillrun.mcp.results import OUTPUT_SCHEMA
from skillrun.report.document import clean
from skillrun.tools.formats.base import portable
from skillrun.tools.script_tool import ScriptTool

if TYPE_CHECKING:
    from skillrun.tools.tool import Tool


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


def _title(tool: ScriptTool) -> str:
    subject = tool.subject
    words = [subject.skill.name or subject.skill.key or subject.skill.path.name]
    stem = subject.script.name.rsplit(".", 1)[0] or subject.script.name
    return f"{words[0]}: {' '.join((stem, *subject.interface.subcommand))}"
