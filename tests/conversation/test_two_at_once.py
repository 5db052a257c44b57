"""Two processes that want different things of one call at the same moment: one of them gets it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from talking import Script, calls

from skillrun.conversation.claims import born
from skillrun.conversation.conversation import Conversation, Progress
from skillrun.conversation.entry import State

if TYPE_CHECKING:
    from battle import Battle
    from conftest import Workplace

    from skillrun.conversation.entry import Entry

RACES = 6


def gated(battle: Battle) -> Entry:
    """Return the call that wants a person's word."""
    return next(one for one in battle.store.entries("c") if one.call.name == "gated")


def raced(battle: Battle, *actions: str) -> list[tuple[str, str]]:
    """Have processes do things at the same moment; return what came of each."""
    racers = [battle.start(f"race {action}") for action in actions]
    time.sleep(0.05)
    battle.effects.with_suffix(".go").touch()
    for pid in racers:
        battle.gone(pid)
    battle.effects.with_suffix(".go").unlink()
    return [(what, action) for what, action, *_ in battle.lines() if what in {"done", "late"}]


def proposed(battle: Battle, *, expires: float | None = None) -> Entry:
    """Bring a conversation to where a call waits for a person."""
    battle.store.remove("c")
    battle.effects.write_text("")
    talk = battle.conversation("c")
    talk.say("go")
    talk.step()
    entry = gated(battle)
    if expires is not None:
        battle.store.swap(entry, replace(entry, expires=time.time() + expires))
    return gated(battle)


def started(battle: Battle) -> int:
    """Return how often the gated call was begun."""
    tag = str(gated(battle).call.arguments["tag"])
    return sum(what == "start" and one == tag for what, one, *_ in battle.lines())


def test_two_who_agree_at_once_agree_once(battle: Battle) -> None:
    """A double click: both are told that it is agreed, one word is kept, and the call is made once."""
    for _ in range(RACES):
        entry = proposed(battle)
        told = raced(battle, *[f"approve {entry.key} {entry.digest}"] * 2)
        assert [what for what, _ in told] == ["done", "done"]
        assert gated(battle).version == entry.version + 1
        battle.conversation("c").complete()
        battle.conversation("c").complete()
        assert started(battle) == 1


def test_of_yes_and_no_at_once_one_counts(battle: Battle) -> None:
    """One who agrees and one who refuses: the second is told that it is decided, and the first word is done."""
    for _ in range(RACES):
        entry = proposed(battle)
        told = raced(battle, f"approve {entry.key} {entry.digest}", f"deny {entry.key} {entry.digest}")
        assert sorted(what for what, _ in told) == ["done", "late"]
        winner = next(action for what, action in told if what == "done")
        battle.conversation("c").complete()
        assert started(battle) == (winner == "approve")
        outcome = gated(battle).outcome
        assert outcome is not None
        assert ("said no" in outcome["text"]) == (winner == "deny")


def test_a_yes_at_the_last_moment_counts_or_is_refused(battle: Battle) -> None:
    """A word that comes as the time runs out: agreed and made, or expired and never made; not both."""
    for number in range(RACES):
        entry = proposed(battle, expires=0.04 + number * 0.01)
        ((what, _), *_) = [
            one
            for one in raced(battle, f"approve {entry.key} {entry.digest}", f"sweep {entry.key}")
            if one[1] == "approve"
        ]
        time.sleep(0.1)
        battle.conversation("c").complete()
        outcome = gated(battle).outcome
        assert outcome is not None
        assert started(battle) == (what == "done")
        assert ("nobody agreed in time" in outcome["text"]) == (what == "late")


def test_a_result_and_a_cancel_at_once_leave_one_of_them(battle: Battle) -> None:
    """A call that is cancelled while it ends: its result, or that it was cancelled; it is told once and stays."""
    for _ in range(RACES):
        entry = proposed(battle)
        battle.conversation("c").desk.approve(entry.key)
        raced(battle, f"sweep {entry.key}", f"cancel {entry.key}")
        found = gated(battle)
        assert found.state is State.ANSWERED
        assert found.outcome is not None
        text = found.outcome["text"]
        assert text == f"did {found.call.arguments['tag']}" or "cancelled" in text
        assert not ("and not made" in text and started(battle))
        battle.conversation("c").complete()
        assert gated(battle) == found


SLEEPER = """
    import os, time
    print("begun", flush=True)
    open("pid", "w").write(str(os.getpid()))
    time.sleep(100)
"""


@pytest.mark.parametrize("background", [False, True])
def test_a_cancel_elsewhere_ends_the_script_here(
    battle: Battle,
    workplace: Workplace,
    background: bool,
) -> None:
    """Another process cancels a call whose script runs here: the script is killed within seconds, its result dropped."""
    workplace.skill("slow", SLEEPER, front='fs_read: ["."]\nfs_write: ["."]\n')
    box = workplace.box("sandbox: {fs_read: ['${workspace}'], fs_write: ['${workspace}']}")
    (tool,) = box.tools
    tool.background = background  # type: ignore[attr-defined]
    model = Script([calls(("slow__act", {})), "over"])
    talk = Conversation(box, model, store=battle.store, name="c")
    talk.say("go")
    thread = threading.Thread(target=talk.complete)
    thread.start()
    mark = workplace.workspace / "pid"
    until = time.monotonic() + 20
    while not (mark.exists() and mark.read_text()):
        assert time.monotonic() < until
        time.sleep(0.02)
    if background:
        thread.join(20)
    jobs = list(box.tools[0]._runner.jobs._jobs.values())  # type: ignore[attr-defined]
    began = time.monotonic()
    raced(battle, "cancel 1.0")
    if background:
        assert talk.complete().progress is Progress.DONE
        while not jobs[0].done:
            assert time.monotonic() < began + 8
            time.sleep(0.05)
    thread.join(20)
    assert time.monotonic() - began < 8
    (entry,) = battle.store.entries("c")
    assert entry.outcome is not None
    assert "cancelled" in entry.outcome["text"]
    assert talk.complete().text == "over"
    assert (
        born(int(mark.read_text())) is None or int(mark.read_text()) < 50
    )  # its number is of its own namespace
