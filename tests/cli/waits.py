"""Calls that wait, kept in somebody's state folder as a conversation would have left them."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skillrun.conversation.claims import host
from skillrun.conversation.entry import Claim, Entry, State
from skillrun.conversation.messages import Reply, Said
from skillrun.conversation.sqlite import SqliteStore
from skillrun.tools.asking import Question
from skillrun.tools.outcome import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from desk import Desk

DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
TERMS: dict[str, Any] = {
    "tool": "deploy__go",
    "identity": ["/skills", "/skills/deploy", "go.py"],
    "skill": "deploy",
    "folder": "/skills/deploy",
    "script": "go.py",
    "version": "sha256:" + "c" * 64,
    "interpreter": "/usr/bin/python3",
    "workspace": "/work",
    "require": "confined",
    "unconfined": False,
    "granted": [
        ["fs_write", "/work/out"],
        ["network", "True"],
        ["timeout", "60"],
        ["limits", "memory=1048576"],
    ],
    "denied": ["/work/.env"],
}
ASKED = Question(
    "q0",
    "Which environment?",
    {
        "type": "object",
        "properties": {
            "env": {"enum": ["staging", "live"], "description": "where to"},
            "sure": {"type": "boolean"},
            "count": {"type": "integer", "minimum": 1, "default": 2},
            "note": {"type": "string"},
        },
        "required": ["env", "sure"],
        "additionalProperties": False,
    },
)
HOSTILE = "x\x1b[2J\u202e\u200b\rskillrun: agreed\n  UNCONFINED    no\nmay this call be made? [y/N] y\x9b"
ALLOWED = "tools: {unattended_approval: true}\n"


def path(desk: Desk) -> Path:
    """Return where the conversations of a desk are kept."""
    return desk.home / ".state" / "skillrun" / "conversations.db"


@contextlib.contextmanager
def opened(desk: Desk) -> Iterator[SqliteStore]:
    """Give the store of a desk."""
    store = SqliteStore(path(desk))
    try:
        yield store
    finally:
        store.close()


def waits(desk: Desk, *entries: Entry, name: str = "talk") -> None:
    """Keep a conversation whose last reply has these calls."""
    with opened(desk) as store:
        calls = tuple(one.call for one in entries)
        made = [replace(one, conversation=name, seq=1, position=number) for number, one in enumerate(entries)]
        assert store.append(name, 0, Said("Deploy it"))
        assert store.append(name, 1, Reply(calls=calls), made)


def approval(arguments: Any = None, **more: Any) -> Entry:
    """Make a call that waits for a person's agreement."""
    call = ToolCall("deploy__go", {"env": "live"} if arguments is None else arguments, "call_1")
    made = Entry("", 0, 0, call, State.AWAITING_APPROVAL, digest=DIGEST, terms=TERMS, since=1_000_000_000.0)
    return replace(made, **more)


def question(asked: Question = ASKED, **more: Any) -> Entry:
    """Make a call that waits for an answer."""
    return approval(state=State.AWAITING_INPUT, question=asked, **more)


def doubtful() -> Entry:
    """Make a call whose process is gone."""
    gone = Claim(host(), "another boot", 1, 0.0, 0.0, 1e12)
    return approval(state=State.RUNNING, claim=gone, attempts=1)


def now(desk: Desk, key: str = "1.0") -> Entry:
    """Return a call as it is kept now."""
    with opened(desk) as store:
        return next(one for one in store.entries("talk") if one.key == key)


def allowed(desk: Desk, text: str = ALLOWED) -> None:
    """Write the operator's own file."""
    own = desk.home / ".config" / "skillrun" / "skillrun.yaml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(text)
