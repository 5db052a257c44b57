"""What a call costs the disk: each commit is a wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from talking import Script, calls

from skillrun.conversation.conversation import Conversation, Progress
from skillrun.conversation.sqlite import SqliteStore
from skillrun.tools.box import Toolbox
from skillrun.tools.tool import tool

if TYPE_CHECKING:
    from pathlib import Path


@tool
def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


@pytest.mark.parametrize("count", [1, 2, 8])
def test_a_call_costs_at_most_three_commits(tmp_path: Path, count: int) -> None:
    """The reply with its calls is one for all of them, then each call has one for its claim and one for its result."""
    store = SqliteStore(tmp_path / "state" / "c.db")
    statements: list[str] = []
    model = Script([calls(*[("add", {"left": 1, "right": 2})] * count)])
    talk = Conversation(Toolbox([add]), model, store=store)
    talk.say("go")
    store._database().set_trace_callback(statements.append)
    assert talk.complete().progress is Progress.DONE
    changes = [
        one.split()[0] for one in statements if one.split()[0] in {"BEGIN", "INSERT", "UPDATE", "DELETE"}
    ]
    # A change outside of a transaction is a transaction of its own.
    commits, inside = 0, False
    for statement in statements:
        word = statement.split()[0]
        inside = word == "BEGIN" or (inside and word not in {"COMMIT", "ROLLBACK"})
        commits += word == "COMMIT" or (word in {"INSERT", "UPDATE", "DELETE"} and not inside)
    answer = 1  # the model's last reply is no call's
    assert changes
    assert commits - answer <= 1 + 2 * count <= 3 * count
    store.close()
