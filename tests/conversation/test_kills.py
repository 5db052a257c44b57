"""Processes on one store, killed at random points and at each point that matters (facts/agents B6, B7)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from nursery import TOOLS

from skillrun.conversation.desk import Desk
from skillrun.conversation.entry import State

if TYPE_CHECKING:
    from battle import Battle


def fought(battle: Battle, *, workers: int, kills: int) -> None:
    """Kill workers at random moments, and start others in their places; then settle all."""
    names = [f"c{number}" for number in range(max(3, kills // 4))]
    battle.begin(names)
    for _ in range(workers):
        battle.start()
    for _ in range(kills):
        battle.person()
        time.sleep(battle.chance.random() * 0.06)
        battle.kill(battle.chance.choice(battle.workers))
        battle.start()
    battle.finish()
    battle.judge()


@pytest.mark.parametrize(
    ("workers", "kills"),
    [
        (2, 15),
        pytest.param(2, 250, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
        pytest.param(8, 250, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
def test_workers_that_are_killed_lose_no_call_and_make_none_twice(
    battle: Battle, workers: int, kills: int
) -> None:
    """SIGKILL at random points: no call lost, none made twice at a time, what was in doubt asked about, the file whole."""
    fought(battle, workers=workers, kills=kills)


# Where a worker dies, and how often each kind of call was begun after somebody else had taken over and settled all:
# (before the takeover, whether a call of a writer is then in doubt).
POINTS = {
    "before claim": (0, False),
    "in claim": (0, False),
    "after claim": (0, True),
    "in the run": (1, True),
    "before finish": (1, True),
    "in finish": (1, True),
    "after finish": (1, False),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_dies_at_a_point_leaves_its_call_to_be_taken_over(battle: Battle, point: str) -> None:
    """Before a claim and after a finish nothing is lost; between them a writer's call is in doubt, a reader's made again."""
    least, doubt = POINTS[point]
    battle.begin(["c"])
    battle.gone(battle.start(point))
    begun = [tag for what, tag, *_ in battle.lines() if what == "start"]
    assert bool(begun) >= bool(least)
    states = {one.call.name: one.state for one in Desk(battle.store, "c").waiting()}
    running = [one for one in battle.store.entries("c") if one.state is State.RUNNING and one.task is None]
    claimed = {one.call.name for one in running}
    in_doubt = {name for name, state in states.items() if state is State.IN_DOUBT}
    # Calls are made side by side, so others than the dying one may be under way too; readers are never in doubt.
    assert in_doubt == claimed - {"reader"}
    assert bool(claimed) >= doubt
    battle.start()
    battle.finish()
    battle.judge()
    assert set(battle.doubts) == {f"c.{[k.tool_name for k in TOOLS].index(name)}" for name in in_doubt}


@pytest.mark.parametrize(
    ("point", "left"), [("before decision", True), ("in decision", True), ("after decision", False)]
)
def test_whoever_dies_in_a_decision_has_decided_or_not(battle: Battle, point: str, left: bool) -> None:
    """A word is given whole or not at all: a person killed before it was written has said nothing."""
    talk = battle.conversation("c")
    talk.say("go")
    talk.step()
    battle.gone(battle.start(point))
    entry = next(one for one in battle.store.entries("c") if one.call.name == "gated")
    assert (entry.state is State.AWAITING_APPROVAL) == left
    assert (entry.decision is None) == left
    battle.start()
    battle.finish()
    battle.judge()
