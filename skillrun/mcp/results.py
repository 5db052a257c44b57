"""Results: what came of a call in MCP's words: text, files, the slim result, and the receipt in `_meta`."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types

from skillrun.report import document, shapes
from skillrun.report.document import TooDeepError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.launch.capture import Captured
    from skillrun.launch.result import Result
    from skillrun.mcp.shelf import Kept, Shelf
    from skillrun.tools.outcome import Attachment, Outcome

LONGEST: Final = 10_000
"""Characters of a text that are sent; the whole of a longer one is on the shelf (seed 001, Long Results)."""
META: Final = "skillrun-sandbox/run"
"""The member of `_meta` with the receipt."""
_KINDS: Final = {"audio/x-wav": "audio/wav"}
"""Kinds that the standard library names as they were called before they were registered."""
_INLINE: Final = ("image/", "audio/")
_NULLABLE_INTEGER: Final = {"type": ["integer", "null"]}
OUTPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "termination": {
            "type": "string",
            "enum": [
                "exited", "signaled", "timed_out", "memory_limit", "cancelled", "refused", "failed_to_start",
            ],
            "description": "How the run ended; refused and failed_to_start mean that nothing was started.",
        },
        "exit_code": _NULLABLE_INTEGER,
        "signal": _NULLABLE_INTEGER,
        "stdout": {"type": "string"},
        "stderr": {"type": "string"},
        "json": {"description": "What the script printed, where that is one JSON value; else null."},
        "truncated": {"type": "boolean", "description": "Whether some of the output is left out here."},
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "media_type": {"type": "string"},
                    "bytes": {"type": "integer"},
                    "uri": {"type": "string"},
                },
                "required": ["name", "media_type", "bytes", "uri"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["termination", "exit_code", "signal", "stdout", "stderr", "json", "truncated", "files"],
    "additionalProperties": False,
}  # fmt: skip
"""The schema of `structuredContent` of every script's tool."""


def result_of(outcome: Outcome, shelf: Shelf) -> types.CallToolResult:
    """Return the result of a call. Whatever went wrong is marked as an error, which the model reads."""
    files = [(one, shelf.put(one.name, one.media_type, one.data)) for one in outcome.attachments]
    content: list[types.ContentBlock] = list(_text(outcome.text, shelf))
    content += [_block(one, kept) for one, kept in files]
    run = outcome.result
    structured = _slim(run, [kept for _, kept in files]) if run is not None else _plain(outcome)
    return types.CallToolResult(
        content=content,
        structured_content=structured,
        is_error=outcome.is_error,
        _meta=None if run is None else {META: receipt(run)},
    )


def receipt(run: Result) -> dict[str, Any]:
    """Return what a run was granted and what was enforced.

    Without the cuts: what was asked for and refused is a hint for the operator, and never for a model (DESIGN 10).
    """
    granted = [
        {"capability": one["capability"], "value": one["value"]} for one in shapes.grant(run.grant)["granted"]
    ]
    made = {
        "skill": run.skill.key,
        "digest": run.digest,
        "script": run.script_name,
        "backend": run.backend,
        "level": run.level,
        "grant": granted,
        "guarantees": shapes.guarantees(run.guarantees),
        "duration_s": run.duration_s,
        "leftovers": run.leftovers,
    }
    cleaned: dict[str, Any] = document.clean(made)
    return cleaned


def _text(text: str, shelf: Shelf) -> Iterator[types.ContentBlock]:
    if len(text) <= LONGEST:
        yield types.TextContent(type="text", text=text)
        return
    kept = shelf.put("output.txt", "text/plain", text.encode())
    shown = f"{text[: LONGEST // 2]}\n[… {len(text)} characters in all …]\n{text[-LONGEST // 2 :]}"
    yield types.TextContent(type="text", text=shown)
    yield _link(kept)


def _block(one: Attachment, kept: Kept) -> types.ContentBlock:
    kind = _KINDS.get(one.media_type, one.media_type)
    text = _small_text(one)
    if text is not None:
        inside = types.TextResourceContents(uri=kept.uri, mime_type=kind, text=text)
        return types.EmbeddedResource(type="resource", resource=inside)
    if not kind.startswith(_INLINE):
        return _link(kept)
    data = base64.b64encode(one.data).decode("ascii")
    if kind.startswith("image/"):
        return types.ImageContent(type="image", data=data, mime_type=kind)
    return types.AudioContent(type="audio", data=data, mime_type=kind)


def _small_text(one: Attachment) -> str | None:
    """Return a text that is short enough to be sent at once."""
    if not (one.media_type.startswith("text/") or one.media_type == "application/json"):
        return None
    try:
        text = one.data.decode()
    except UnicodeDecodeError:
        return None
    return text if len(text) <= LONGEST else None


def _link(kept: Kept) -> types.ResourceLink:
    return types.ResourceLink(
        type="resource_link", name=kept.name, uri=kept.uri, mime_type=kept.media_type, size=len(kept.data)
    )


def _slim(run: Result, files: list[Kept]) -> dict[str, Any]:
    stdout, stderr = _bounded(run.stdout), _bounded(run.stderr)
    cut = run.stdout.truncated or run.stderr.truncated
    cut = cut or stdout != run.stdout.text or stderr != run.stderr.text
    slim = {
        "termination": run.termination.value,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "stdout": stdout,
        "stderr": stderr,
        "json": run.json if run.stdout.bytes <= LONGEST else None,
        "truncated": cut,
        "files": [
            {"name": one.name, "media_type": one.media_type, "bytes": len(one.data), "uri": one.uri}
            for one in files
        ],
    }
    try:
        cleaned: dict[str, Any] = document.clean(slim)
    except TooDeepError:
        cleaned = document.clean({**slim, "json": None})
    return cleaned


def _bounded(stream: Captured) -> str:
    text = stream.text
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}\n[…]\n{text[-LONGEST // 2 :]}"


def _plain(outcome: Outcome) -> Any:
    """Return the data of a tool that is no script; none with an error, which need not fit the schema."""
    return None if outcome.is_error else outcome.structured
