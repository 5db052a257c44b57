"""The JSON Schemas of what `pending` and `chat` write, with the names that the code uses."""
# ruff: noqa: INP001 - beside the pages, not a package

from __future__ import annotations

from typing import Any

from check_schemas import TEXT, TEXT_OR_NULL, TEXTS, closed, document, many

from skillrun.conversation.conversation import Progress
from skillrun.conversation.entry import State
from skillrun.tools.task import Status

TIME = {"type": ["string", "null"], "description": "ISO 8601, UTC"}
DIGEST = {"type": ["string", "null"], "pattern": "^sha256:[0-9a-f]{64}$"}
TRUTH = {"type": "boolean"}


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that null fits too."""
    return {"anyOf": [{"type": "null"}, schema]}


def pending() -> dict[str, Any]:
    """Return the schema of `skillrun pending --json`."""
    return document("skillrun.pending/1", "skillrun pending --json", {"store": TEXT, "calls": many(_call())})


def chat() -> dict[str, Any]:
    """Return the schema of `skillrun chat --json`."""
    members = {
        "conversation": TEXT,
        "progress": {"enum": [one.value for one in Progress]},
        "text": {**TEXT_OR_NULL, "description": "what the model answered; null when it has not"},
        "waiting": many(_call()),
    }
    return document("skillrun.chat/1", "skillrun chat --json", members)


def _call() -> dict[str, Any]:
    question = {"key": TEXT, "message": TEXT, "fields": or_null({"type": "object"}), "url": TEXT_OR_NULL}
    task = {
        "status": {"enum": [one.value for one in Status]},
        "message": TEXT_OR_NULL,
        "poll_interval": {"type": ["number", "null"]},
    }
    decision = {"agreed": TRUTH, "who": TEXT, "time": TIME, "reason": TEXT_OR_NULL}
    return closed(
        {
            "conversation": TEXT,
            "key": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+$"},
            "tool": {"type": "string", "description": "the name as the model wrote it"},
            "arguments": {"description": "as the model wrote them"},
            "state": {"enum": [one.value for one in State if one is not State.ANSWERED]},
            "since": TIME,
            "expires": TIME,
            "over": {"type": "boolean", "description": "nobody can settle it any more"},
            "digest": {**DIGEST, "description": "what `skillrun approve --digest` agrees to"},
            "approval": or_null(closed({**_terms(), "before": or_null(closed(_terms()))})),
            "question": or_null(closed(question)),
            "task": or_null(closed(task)),
            "decision": or_null(closed(decision)),
            "claim": or_null(closed({"host": TEXT, "pid": {"type": "integer"}, "until": TIME})),
        }
    )


def _terms() -> dict[str, Any]:
    right = closed({"capability": TEXT, "value": TEXT})
    names = ("skill", "folder", "script", "version", "interpreter", "workspace", "require", "problem")
    return {
        **dict.fromkeys(names, TEXT_OR_NULL),
        "identity": TEXTS,
        "unconfined": TRUTH,
        "granted": or_null(many(right)),
        "denied": or_null(TEXTS),
    }
