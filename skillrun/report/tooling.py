"""Tooling: tools as a table for people, and tools and calls as JSON for programs."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from skillrun.report import shapes
from skillrun.report.document import TooDeepError, clean, name
from skillrun.report.escape import escape, sentence
from skillrun.report.receipt import receipt
from skillrun.report.style import PLAIN, Style
from skillrun.report.text import clip, counted, fold_items
from skillrun.tools.script_tool import ScriptTool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from skillrun.tools.outcome import Outcome
    from skillrun.tools.tool import Tool


def tool_shapes(tools: Sequence[Tool]) -> shapes.Shape:
    """Shape tools as `tools/1`."""
    return {**shapes.schema("tools"), "tools": [tool_shape(one) for one in tools]}


def tool_shape(tool: Tool) -> shapes.Shape:
    """Shape one tool; `skill`, `script` and `subcommand` are null for one that is no script."""
    subject = tool.subject if isinstance(tool, ScriptTool) else None
    return {
        "name": tool.full_name,
        "namespace": tool.namespace,
        "description": tool.about,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "annotations": dict(tool.annotations),
        "skill": None if subject is None else name(subject.skill.path),
        "script": None if subject is None else name(subject.script.name),
        "subcommand": " ".join(subject.interface.subcommand) or None if subject is not None else None,
        "deferred": tool.defer,
        "access": _access(tool),
        "read_from": None if subject is None else subject.interface.source,
        "requires_approval": tool.requires_approval,
    }


def call_shape(outcome: Outcome) -> shapes.Shape:
    """Shape what came of a call as `call/1`."""
    call = outcome.call
    return {
        **shapes.schema("call"),
        "tool": None if call is None else call.name,
        "arguments": None if call is None else _own(call.arguments),
        "text": outcome.text,
        "is_error": outcome.is_error,
        "retryable": outcome.retryable,
        "structured": _own(outcome.structured),
        "attachments": [
            {"name": one.name, "media_type": one.media_type, "base64": base64.b64encode(one.data).decode()}
            for one in outcome.attachments
        ],
        "saved": None if outcome.saved is None else name(outcome.saved),
        "result": None if outcome.result is None else receipt(outcome.result),
    }


def table(tools: Sequence[Tool], *, columns: int, style: Style = PLAIN) -> Iterator[str]:
    """Write tools for people: the name, what it takes, and the first line of what it says."""
    for tool in tools:
        yield style(escape(tool.full_name), "bold")
        said = next((line for line in reversed(tool.about.split("\n\n")) if line.strip()), "")
        yield "  " + clip(sentence(said), max(columns - 2, 1))
        yield from fold_items(_takes(tool) or ["nothing"], columns, first="  takes  ", indent=" " * 9)
    yield counted(len(tools), "tool")


def _takes(tool: Tool) -> list[str]:
    schema = tool.input_schema
    needed = schema.get("required", ())
    granted = _access(tool)
    return [
        f"{escape(key)}{'' if key in needed else '?'}: {_kind(one)}{f' ({granted[key]})' if key in granted else ''}"
        for key, one in schema["properties"].items()
    ]


def _access(tool: Tool) -> dict[str, str]:
    if not isinstance(tool, ScriptTool):
        return {}
    return {one.name: one.access.value for one in tool.subject.interface.parameters if one.access is not None}


def _kind(schema: Any) -> str:
    """Write a schema in a few words."""
    if not isinstance(schema, dict):
        return "anything"
    if isinstance(schema.get("enum"), list):
        words = [escape(str(one)) for one in schema["enum"][:4]]
        return "|".join([*words, *(["…"] if len(schema["enum"]) > len(words) else [])])
    kind = schema.get("type")
    if kind == "array":
        return f"{_kind(schema.get('items'))}[]"
    if isinstance(schema.get("anyOf"), list):
        return " or ".join(_kind(one) for one in schema["anyOf"])
    return " or ".join(map(str, kind)) if isinstance(kind, list) else escape(str(kind or "anything"))


def _own(value: Any) -> Any:
    """Give a script's own data, null where it is deeper than a document passes on."""
    try:
        return clean(value)
    except TooDeepError:
        return None
