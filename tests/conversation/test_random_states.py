"""Random interleavings of processes and people over one conversation, against what has to hold whatever happens.

`SKILLRUN_FUZZ=5000` is the long form; a failure prints its seed, and `SKILLRUN_SEED` repeats it. Plain chance and no
hypothesis: what happens next depends on what is there, and nothing of it shrinks.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from talking import Machine, Script, calls, settle_all, whole

from skillrun.conversation.conversation import Conversation
from skillrun.conversation.entry import Entry, State
from skillrun.conversation.sqlite import SqliteStore
from skillrun.conversation.store import MemoryStore
from skillrun.conversation.transitions import AlreadyDecidedError
from skillrun.errors import UsageError
from skillrun.tools.box import Toolbox
from skillrun.tools.outcome import ToolCall
from skillrun.tools.task import Task
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillrun.conversation.claims import Here
    from skillrun.conversation.entry import Claim
    from skillrun.conversation.store import Store

ROUNDS = int(os.environ.get("SKILLRUN_FUZZ", "120"))
SEED = int(os.environ.get("SKILLRUN_SEED", "0")) or random.SystemRandom().randrange(1, 10**9)
ACTIONS = [*["step"] * 8, *["approve"] * 4, "approve_stale", "deny", *["answer"] * 2, "decline", *["retry"] * 2, "give_up",
           "cancel", "tick", "lease", "set_clock", "look", "death"]  # fmt: skip
DURING = ["return", "die", "ask", "task", "raise", "other", "cancel", "lease", "approve"]


class DeadError(BaseException):
    """A process that was killed does nothing any more."""


@dataclass
class Mortal:
    """A store as one process sees it: after its death nothing of it arrives."""

    inner: Store
    dead: bool = False
    shared: bool = False

    def __getattr__(self, name: str) -> Any:
        if self.dead:
            raise DeadError
        return getattr(self.inner, name)

    def append(self, *words: Any) -> bool:
        """Pass it on."""
        return bool(self.__getattr__("append")(*words))

    def swap(self, old: Entry, new: Entry) -> Entry | None:
        """Pass it on."""
        found: Entry | None = self.__getattr__("swap")(old, new)
        return found


@dataclass
class Process:
    """One process with its own view of the conversation."""

    here: Here
    store: Mortal
    talk: Conversation


@dataclass
class World:
    """The machine, the store, and what was seen of every call."""

    chance: random.Random
    store: Store
    machine: Machine = field(default_factory=Machine)
    processes: list[Process] = field(default_factory=list)
    depth: int = 0
    starts: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)  # starts that have a reason to come again
    running: list[tuple[str, Claim, Process]] = field(default_factory=list)
    late: set[str] = field(default_factory=set)
    calm: bool = False  # nothing goes wrong any more
    seen: dict[str, Entry] = field(default_factory=dict)

    def born(self) -> Process:
        """Start a process."""
        here = self.machine.process()
        mortal = Mortal(self.store)
        box = Toolbox([Gated(owner=self), Reader(owner=self), Writer(owner=self)], workers=1)
        reply = calls(("gated", {"n": 0}), ("reader", {"n": 1}), ("writer", {"n": 2}), ("gated", {"n": 3}),
                      ("nobody", {}), ("writer", {"wrong": 1}))  # fmt: skip
        made = Conversation(
            box, Script([reply, "over"]), store=mortal, name="c", here=here, who="p", patience=5_000
        )
        process = Process(here, mortal, made)
        self.processes.append(process)
        return process

    def kill(self, process: Process) -> None:
        """End a process."""
        process.store.dead = True
        self.machine.kill(process.here)
        self.processes.remove(process)

    def entries(self) -> list[Entry]:
        """Look at all calls, and at what may never change."""
        found = self.store.entries("c")
        for one in found:
            before = self.seen.get(one.key)
            if before is not None:
                assert one.version > before.version or one == before, "changed without a new version"
                if before.state is State.ANSWERED:
                    assert one == before, "a result was changed"
            self.seen[one.key] = one
        return found

    def act(self, actions: Sequence[str], entry: Entry | None = None) -> None:
        """Do one thing that a process or a person may do now; a person's word is about `entry`, any without it."""
        action = self.chance.choice(actions)
        process = self.chance.choice(self.processes) if self.processes else self.born()
        if action in {"step", "other"}:
            self.step(process if action == "step" else self.born())
        elif action == "tick":
            self.machine.clock.pass_(1)
        elif action == "lease":
            self.machine.clock.pass_(700)
        elif action == "set_clock":
            self.machine.clock.wall += self.chance.choice([-86_400, 86_400])
        elif action == "look":
            process.talk.history()
        elif action == "death" and self.depth == 0:
            self.kill(process)
        elif action != "death":
            self.person(process, action, entry)
        self.entries()

    def step(self, process: Process) -> None:
        """Have a process carry on; it may die of it."""
        self.depth += 1
        try:
            process.talk.step()
        except DeadError:
            assert process.store.dead
        finally:
            self.depth -= 1

    def person(self, process: Process, action: str, about: Entry | None = None) -> None:
        """Say a word about some call; those that come too late are refused and change nothing."""
        found = self.entries()
        if not found:
            return
        waits = [one for one in found if one.open] or found
        entry = about or self.chance.choice(waits)
        desk = process.talk.desk
        words: dict[str, Any] = {
            "approve": lambda: desk.approve(entry.key, digest=entry.digest),
            "approve_stale": lambda: desk.approve(entry.key, digest="sha256:other"),
            "deny": lambda: desk.deny(entry.key, reason="no"),
            "answer": lambda: desk.answer(entry.key, {"word": "yes"}),
            "decline": lambda: desk.decline(entry.key),
            "retry": lambda: desk.retry(entry.key),
            "give_up": lambda: desk.give_up(entry.key),
            "cancel": lambda: desk.cancel(entry.key),
        }
        try:
            words[action]()
        except (AlreadyDecidedError, UsageError):
            assert self.store.version(entry) == entry.version
        else:
            assert action != "approve_stale" or entry.decision is not None
            self.excused[entry.key] += action == "retry"

    def started(self, call: ToolCall, *, gated: bool, again: bool, resumed: bool = False) -> str:
        """Check a start, have things happen meanwhile, and return what the tool returns."""
        entry = next(one for one in self.entries() if one.call.id == call.id)
        process = next(one for one in self.processes if entry.claim and one.here.mine(entry.claim))
        assert entry.state is State.RUNNING
        if gated:
            assert entry.decision is not None
            assert entry.decision.agreed
            assert entry.decision.digest == entry.digest
        for key, claim, other in self.running:
            overlap = key == entry.key and not other.store.dead and self.machine.clock.boot <= claim.until
            assert not overlap, "made twice within a claim"
        self.starts[entry.key] += not resumed
        if not again:
            assert self.starts[entry.key] <= 1 + self.excused[entry.key], (
                "made again, and nobody asked for it"
            )
        token = f"{entry.key}#{len(self.late)}#{self.starts[entry.key]}"
        assert entry.claim is not None
        self.running.append((entry.key, entry.claim, process))
        try:
            self.meanwhile(entry, process)
        finally:
            self.running.pop()
        if process.store.dead:
            raise DeadError
        if self.store.version(entry) != entry.version:
            self.late.add(token)
        return token

    def meanwhile(self, entry: Entry, process: Process) -> None:
        """Let other things happen while a call is made."""
        what = "return" if self.calm else self.chance.choice(DURING if self.depth < 3 else DURING[:5])
        if what == "die":
            self.kill(process)
            raise DeadError
        if what == "raise":
            raise ValueError("it went wrong")
        if what == "ask":
            self.excused[entry.key] += 1
            Tool().ask("Which?", key="only", word={"type": "string"})
        if what == "task":
            raise Paused
        if what in {"other", "cancel", "lease", "approve"}:
            self.act([what], entry if what == "cancel" else None)


class BrokenError(BaseException):
    """What had to hold did not; no tool's failure, which a model would be told of."""


class Paused(Exception):  # noqa: N818 - no error: a way out of the depth
    """The tool returns a task."""


class Gated(Tool):
    """A tool that wants a person's word."""

    tool_name = "gated"
    requires_approval = True
    again = False

    def execute(self, n: int, tool_call: ToolCall) -> Any:
        """Do what the world wants."""
        try:
            return self.owner.started(tool_call, gated=self.requires_approval, again=self.again)
        except Paused:
            return Task(data={"id": tool_call.id})
        except AssertionError as wrong:
            raise BrokenError(str(wrong)) from wrong

    def resume(self, task: Task, n: int) -> Any:
        """Carry on."""
        call = ToolCall(self.name, {"n": n}, task.data["id"])
        try:
            return self.owner.started(call, gated=self.requires_approval, again=self.again, resumed=True)
        except Paused:
            return task
        except AssertionError as wrong:
            raise BrokenError(str(wrong)) from wrong


class Reader(Gated):
    """A tool that may be made again without asking."""

    tool_name = "reader"
    requires_approval = False
    repeatable = True
    again = True


class Writer(Gated):
    """A tool that may not."""

    tool_name = "writer"
    requires_approval = False


def interleaved(seed: int, store: Store) -> None:
    """Let anything happen for a while, then have people settle everything."""
    chance = random.Random(seed)
    world = World(chance, store)
    first = world.born()
    first.talk.say("go")
    world.born()
    for _ in range(chance.randrange(5, 40)):
        world.act(ACTIONS)
    world.calm = True
    last = world.born()
    settle_all(last.talk, world.machine)
    found = world.entries()
    assert len(found) == 6
    assert all(one.state is State.ANSWERED and one.outcome for one in found)
    assert whole(last.talk)
    told = {one.outcome["text"] for one in found if one.outcome}
    assert not told & world.late, "the result of a process that had lost its claim was taken"


def test_random_interleavings_in_memory() -> None:
    """Whatever is interleaved: one result a call, no gated call without its word, versions grow, late results drop."""
    for number in range(ROUNDS):
        print("SKILLRUN_SEED =", SEED + number)
        interleaved(SEED + number, MemoryStore())


def test_random_interleavings_on_disk(tmp_path: Path) -> None:
    """The same holds for calls that go through SQLite and back."""
    for number in range(max(ROUNDS // 10, 10)):
        print("SKILLRUN_SEED =", SEED + number)
        store = SqliteStore(tmp_path / str(number) / "c.db")
        try:
            interleaved(SEED + number, store)
            assert store.problems() == []
        finally:
            store.close()
