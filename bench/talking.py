"""What the loop of a conversation costs beside the tool that it calls, without a store and with one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Row, in_turn
from skillrun.conversation.conversation import Conversation, Progress
from skillrun.conversation.messages import Reply, Said
from skillrun.conversation.sqlite import SqliteStore
from skillrun.host import current_host
from skillrun.runner import Runner
from skillrun.tools.box import Toolbox
from skillrun.tools.outcome import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.conversation.messages import Message
    from skillrun.conversation.model import Offer

_SCRIPT = """#!/usr/bin/env python3
import argparse, json
p = argparse.ArgumentParser()
p.add_argument("name")
print(json.dumps(vars(p.parse_args())))
"""
_CALL = ToolCall("demo__echo", {"name": "x"})


def rows(rounds: int) -> list[Row]:
    """Compare a whole question, its call and its answer with the call alone; the model answers at once."""
    with tempfile.TemporaryDirectory() as top:
        skill = Path(top, "work", "skills", "demo")
        (skill / "scripts").mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\nname: demo\ndescription: A demo.\n---\n")
        (skill / "scripts" / "echo.py").write_text(_SCRIPT)
        store = SqliteStore(Path(top, "state", "conversations.db"))
        with (
            Runner(workspace=Path(top, "work"), ceiling="default", host=current_host()) as runner,
            Toolbox(runner=runner) as box,
        ):
            turn = box.turn()
            things = {
                "call": lambda: turn.answer(_CALL),
                "loop": lambda: _talk(Conversation(box, _model)),
                "stored": lambda: _talk(Conversation(box, _model, store=store)),
            }
            taken = in_turn(things, rounds)
        store.close()
    return [
        Row(
            "a loop's step with a script, no store", "toolbox.call of it", taken["loop"] / taken["call"], 1.05
        ),
        Row(
            "a loop's step with a script, SQLite", "toolbox.call of it", taken["stored"] / taken["call"], None
        ),
    ]


def _talk(conversation: Conversation) -> None:
    assert conversation.ask("go").progress is Progress.DONE


def _model(messages: Sequence[Message], offer: Offer) -> Reply:
    del offer
    return Reply(calls=(_CALL,)) if isinstance(messages[-1], Said) else Reply("done")
