"""A battle: conversations in one store, workers that carry them on and are killed, and a person who settles what waits."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nursery import TOOLS, effects_log, reply
from talking import Script, whole

from skillrun.conversation.claims import born
from skillrun.conversation.conversation import Conversation
from skillrun.conversation.desk import Desk
from skillrun.conversation.entry import State
from skillrun.conversation.sqlite import SqliteStore
from skillrun.conversation.transitions import AlreadyDecidedError
from skillrun.tools.box import Toolbox

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from skillrun.conversation.entry import Entry

SEED = int(os.environ.get("SKILLRUN_SEED", "0")) or random.SystemRandom().randrange(1, 10**9)


@dataclass
class Battle:
    """Conversations in one store, workers on them, and a person who settles what waits."""

    file: Path
    nursery: subprocess.Popen[str]
    chance: random.Random = field(default_factory=lambda: random.Random(SEED))
    workers: list[int] = field(default_factory=list)
    died: dict[int, float] = field(default_factory=dict)
    retries: Counter[str] = field(default_factory=Counter)
    doubts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.store = SqliteStore(self.file)
        self.effects = self.file.parent / "effects"
        self.effects.touch()

    def start(self, point: str = "") -> int:
        """Have a worker forked."""
        assert self.nursery.stdin is not None
        assert self.nursery.stdout is not None
        self.nursery.stdin.write(f"{self.file}\t{self.effects}\t{point}\n")
        self.nursery.stdin.flush()
        pid = int(self.nursery.stdout.readline())
        self.workers.append(pid)
        return pid

    def kill(self, pid: int) -> None:
        """Kill a worker, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.gone(pid)

    def gone(self, pid: int) -> None:
        """Wait for a worker's death."""
        until = time.monotonic() + 20
        while born(pid) is not None:
            assert time.monotonic() < until, "a worker does not die"
            time.sleep(0.001)
        self.died[pid] = time.monotonic()
        self.workers.remove(pid)

    def conversation(self, name: str) -> Conversation:
        """Return a conversation as this process sees it; its model is never asked here."""
        box = Toolbox([kind(owner=self.effects) for kind in TOOLS])
        return Conversation(box, Script([reply(name), f"{name} is done"]), store=self.store, name=name)

    def begin(self, names: list[str]) -> None:
        """Begin conversations: a person has said something in each."""
        for name in names:
            self.conversation(name).say("go")

    def person(self, *, deny: float = 0.2) -> None:
        """Say a word about everything that waits."""
        for one in self.store.entries(open_only=True):
            desk = Desk(self.store, one.conversation, "the person")
            for entry in desk.waiting():
                with contextlib.suppress(AlreadyDecidedError):
                    self.word(desk, entry, deny)

    def word(self, desk: Desk, entry: Entry, deny: float) -> None:
        """Say a word about one call."""
        yes = self.chance.random() >= deny
        tag = str(entry.call.arguments["tag"])
        if entry.state is State.AWAITING_APPROVAL:
            (desk.approve if yes else desk.deny)(entry.key, digest=entry.digest)
        elif entry.state is State.AWAITING_INPUT:
            (desk.answer if yes else desk.decline)(entry.key)
        else:
            self.doubts[tag] += 1
            (desk.retry if yes else desk.give_up)(entry.key)
            self.retries[tag] += yes

    def over(self) -> bool:
        """Whether every conversation has come to its end."""
        return all(
            len(self.store.messages(name)) == 3 and not self.store.entries(name, open_only=True)
            for name in self.store.conversations()
        )

    def finish(self, seconds: float = 60) -> None:
        """Have everything settled and carried on to its end, with workers that live."""
        until = time.monotonic() + seconds
        while not self.over():
            assert time.monotonic() < until, self.store.entries(open_only=True)
            self.person()
            time.sleep(0.01)

    def lines(self) -> list[tuple[str, str, int, float]]:
        """Return what the tools did: start or end, the call, the process, the time."""
        made = (line.split() for line in self.effects.read_text().splitlines())
        return [(what, tag, int(pid), float(when)) for what, tag, pid, when in made]

    def judge(self) -> None:
        """Hold what was done against what may be."""
        errors = effects_log(self.effects)
        assert not errors.exists(), errors.read_text()
        assert self.store.problems() == []
        runs: dict[str, list[tuple[int, float]]] = defaultdict(list)
        ended: dict[tuple[str, int], float] = {}
        for what, tag, pid, when in self.lines():
            if what == "start":
                for before, _ in runs[tag]:
                    over = ended.get((tag, before), self.died.get(before, float("inf")))
                    assert before == pid or over <= when or born(before) is None, (
                        f"{tag} was made twice at a time"
                    )
                runs[tag].append((pid, when))
            else:
                ended[tag, pid] = when
        for name in self.store.conversations():
            talk = self.conversation(name)
            assert whole(talk)
            for entry in self.store.entries(name):
                self.judge_call(entry, len(runs[str(entry.call.arguments["tag"])]))

    def judge_call(self, entry: Entry, starts: int) -> None:
        """Hold the result of one call against the number of its starts."""
        tag = str(entry.call.arguments["tag"])
        assert entry.outcome is not None
        text = entry.outcome["text"]
        if entry.call.name != "reader":
            assert starts <= 1 + self.retries[tag], f"{tag} was made again, and nobody had said so"
        if text == f"did {tag}" and entry.call.name != "tasker":
            assert starts >= 1, f"{tag} was said to be done"
        if "said no" in text:
            assert starts == 0
            assert entry.call.name == "gated"

    def close(self) -> None:
        """End everybody."""
        for pid in list(self.workers):
            self.kill(pid)
        self.store.close()
