"""Results: what came of a call as JSON data for a store, and back as the outcome that goes to the model."""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.outcome import Attachment, Outcome, ToolError, clean, jsonable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillrun.conversation.files import Files
    from skillrun.tools.outcome import ToolCall

log: Final = logging.getLogger("skillrun.conversation")


def to_data(outcome: Outcome, files: Files | None) -> dict[str, Any]:
    """Return an outcome as JSON data; attachments are saved as files where there are some."""
    return {
        "text": clean(outcome.text),
        "is_error": outcome.is_error,
        "retryable": outcome.retryable,
        "structured": jsonable(outcome.structured),
        "attachments": [_attached(one, files) for one in outcome.attachments],
        "saved": outcome.saved.name if outcome.saved is not None and files is not None else None,
    }


def from_data(data: Mapping[str, Any], call: ToolCall, files: Files | None) -> Outcome:
    """Return the outcome that `to_data` wrote. A file that is gone is said to be, and the rest is still there."""
    found = [_attachment(one, files) for one in data.get("attachments", ())]
    gone = [
        clean(one["name"])[:100]
        for one, made in zip(data.get("attachments", ()), found, strict=True)
        if made is None
    ]
    text = data["text"] + "".join(f"\n[the file {name} is gone]" for name in gone)
    saved = data.get("saved")
    return Outcome(
        text,
        is_error=data["is_error"],
        structured=data.get("structured"),
        attachments=tuple(one for one in found if one is not None),
        retryable=data.get("retryable", False),
        saved=files.folder / saved if saved is not None and files is not None else None,
        call=call,
    )


def _attached(one: Attachment, files: Files | None) -> dict[str, Any]:
    about = {"name": str(one.name), "media_type": str(one.media_type)}
    if files is not None:
        try:
            return {**about, "file": files.add(one.name, one.data)}
        except OSError as wrong:
            log.warning("%s", f"an attachment was not saved as a file: {wrong}")
    return {**about, "data": base64.b64encode(one.data).decode("ascii")}


def _attachment(data: Mapping[str, Any], files: Files | None) -> Attachment | None:
    if "data" in data:
        return Attachment(data["name"], data["media_type"], base64.b64decode(data["data"]))
    try:
        held = None if files is None else files.read(data["file"])
    except (ToolError, OSError):
        held = None
    return None if held is None else Attachment(data["name"], data["media_type"], held)
