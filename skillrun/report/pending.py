"""Pending: calls that wait, and what a conversation came to, as JSON for programs."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from skillrun.conversation.entry import State
from skillrun.report import shapes
from skillrun.report.document import name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from skillrun.conversation.conversation import Standing
    from skillrun.conversation.entry import Entry


def pending_shape(store: Path, calls: Iterable[Entry], *, now: float) -> shapes.Shape:
    """Shape open calls as `pending/1`."""
    return {
        **shapes.schema("pending"),
        "store": name(store),
        "calls": [call_shape(one, now=now) for one in calls],
    }


def chat_shape(conversation: str, standing: Standing, *, now: float) -> shapes.Shape:
    """Shape what a conversation came to as `chat/1`; `text` is null where the model has not answered."""
    done = standing.reply is not None and not standing.waiting
    return {
        **shapes.schema("chat"),
        "conversation": conversation,
        "progress": standing.progress.value,
        "text": standing.text if done else None,
        "waiting": [call_shape(one, now=now) for one in standing.waiting],
    }


def call_shape(entry: Entry, *, now: float) -> shapes.Shape:
    """Shape one open call; what it does not wait for is null."""
    return {
        "conversation": entry.conversation,
        "key": entry.key,
        "tool": entry.call.name,
        "arguments": entry.call.arguments,
        "state": entry.state.value,
        "since": _time(entry.since),
        "expires": _time(entry.expires),
        "over": entry.expires is not None and now > entry.expires,
        "digest": entry.digest or None,
        "approval": _approval(entry),
        "question": _question(entry),
        "task": _task(entry),
        "decision": _decision(entry),
        "claim": _claim(entry),
    }


def _approval(entry: Entry) -> shapes.Shape | None:
    if not entry.terms:
        return None
    before = entry.terms.get("before")
    return {**_terms(entry.terms), "before": _terms(before) if isinstance(before, dict) else None}


def _terms(terms: Mapping[str, Any]) -> shapes.Shape:
    granted = terms.get("granted")
    kept = ("skill", "folder", "script", "version", "interpreter", "workspace", "require", "problem")
    return {
        **{key: terms.get(key) for key in kept},
        "identity": [str(part) for part in terms.get("identity") or ()],
        "unconfined": bool(terms.get("unconfined")),
        "granted": None
        if granted is None
        else [{"capability": str(kind), "value": str(value)} for kind, value in granted],
        "denied": terms.get("denied"),
    }


def _question(entry: Entry) -> shapes.Shape | None:
    asked = entry.question
    if entry.state is not State.AWAITING_INPUT or asked is None:
        return None
    return {
        "key": asked.key,
        "message": asked.message,
        "fields": dict(asked.fields) or None,
        "url": asked.url,
    }


def _task(entry: Entry) -> shapes.Shape | None:
    task = entry.task
    if entry.state is not State.PAUSED or task is None:
        return None
    return {key: task.get(key) for key in ("status", "message", "poll_interval")}


def _decision(entry: Entry) -> shapes.Shape | None:
    word = entry.decision
    if word is None:
        return None
    return {"agreed": word.agreed, "who": word.who, "time": _time(word.when), "reason": word.reason or None}


def _claim(entry: Entry) -> shapes.Shape | None:
    claim = entry.claim
    if claim is None:
        return None
    return {"host": claim.host, "pid": claim.pid, "until": _time(claim.until_wall)}


def _time(seconds: float | None) -> str | None:
    """Write a time as ISO 8601, UTC; null for one that no calendar has."""
    if seconds is None:
        return None
    try:
        return dt.datetime.fromtimestamp(seconds, dt.timezone.utc).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None
