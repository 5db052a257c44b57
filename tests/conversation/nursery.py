"""A process that forks workers on one store, so that each is there in a moment; the tests kill them.

It reads lines `FILE EFFECTS POINT` and prints the pid of the worker it made. A worker carries every conversation of the
store on, for ever, or until it comes to its point, where it kills itself.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from talking import Script, calls

from skillrun.conversation.conversation import Conversation
from skillrun.conversation.desk import Desk
from skillrun.conversation.entry import Entry, State
from skillrun.conversation.sqlite import SqliteStore
from skillrun.conversation.transitions import AlreadyDecidedError
from skillrun.tools.box import Toolbox
from skillrun.tools.task import Task
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from skillrun.conversation.messages import Reply


def die() -> None:
    """Go, as by the kernel's out-of-memory killer: nothing is tidied up."""
    os.kill(os.getpid(), signal.SIGKILL)


class Effect(Tool):
    """A tool whose work can be counted: a line when it begins and one when it ends."""

    tool_name = "writer"
    middle = False  # whether it dies in its middle

    def execute(self, tag: str) -> Any:
        """Do it."""
        return self.effect(tag)

    def effect(self, tag: str) -> str:
        """Write the two lines."""
        self.told("start", tag)
        time.sleep(random.random() * 0.01)
        if type(self).middle:
            die()
        self.told("end", tag)
        return f"did {tag}"

    def told(self, what: str, tag: str) -> None:
        """Append a line, whole or not at all."""
        line = f"{what} {tag} {os.getpid()} {time.monotonic()}\n"
        with self.owner.open("a") as file:
            file.write(line)


class Reader(Effect):
    """The same, and it may be made again."""

    tool_name = "reader"
    repeatable = True


class Gated(Effect):
    """The same, after a person's word."""

    tool_name = "gated"
    requires_approval = True


class Asker(Effect):
    """The same, after an answer."""

    tool_name = "asker"

    def execute(self, tag: str) -> Any:
        """Ask, then do it."""
        self.ask("Sure?", sure={"type": "boolean"})
        return self.effect(tag)


class Tasker(Effect):
    """The same, once the task is over."""

    tool_name = "tasker"

    def execute(self, tag: str) -> Any:
        """Begin it."""
        return Task(data={"looks": 0})

    def resume(self, task: Task, tag: str) -> Any:
        """Look twice, then say so."""
        looks = task.data["looks"] + 1
        return f"did {tag}" if looks > 1 else Task(data={"looks": looks})


TOOLS = (Effect, Reader, Gated, Asker, Tasker)


def reply(name: str) -> Reply:
    """Return what the model calls in a conversation."""
    return calls(*((kind.tool_name or "", {"tag": f"{name}.{place}"}) for place, kind in enumerate(TOOLS)))


class Dying(SqliteStore):
    """A store at whose changes a process can die."""

    point = ""

    def swap(self, old: Entry, new: Entry) -> Entry | None:
        """Change an entry, and die before or after."""
        kind = {State.RUNNING: "claim", State.ANSWERED: "finish"}.get(new.state, "other")
        decides = new.decision is not None and old.decision is None
        kind = "decision" if decides else kind
        if self.point == f"before {kind}":
            die()
        if self.point == f"in {kind}":
            # Under its lock: sqlite3 sets it holding the interpreter's lock and waiting for the connection's, and another
            # thread that is to die holds that one and waits for the interpreter's.
            with self._lock:
                self._database().set_trace_callback(lambda _: die())
        made = super().swap(old, new)
        if self.point == f"after {kind}":
            die()
        return made


def race(file: Path, effects: Path, words: list[str]) -> None:
    """Do one thing when the starting shot falls, and write down what came of it."""
    store = SqliteStore(file)
    action, key, *more = words
    desk = Desk(store, "c", f"{action} {os.getpid()}")
    while not effects.with_suffix(".go").exists():
        pass
    try:
        if action == "sweep":
            carry_on(store, effects, "c")
        else:
            getattr(desk, action)(key, **({"digest": more[0]} if more else {}))
        told = "done"
    except AlreadyDecidedError:
        told = "late"
    with effects.open("a") as file_:
        file_.write(f"{told} {action} {os.getpid()} {time.monotonic()}\n")


def carry_on(store: SqliteStore, effects: Path, name: str) -> None:
    """Carry a conversation on as far as it goes."""
    box = Toolbox([kind(owner=effects) for kind in TOOLS])
    Conversation(box, Script([reply(name), f"{name} is done"]), store=store, name=name).complete()


def work(file: Path, effects: Path, point: str) -> None:
    """Carry every conversation on."""
    if point.startswith("race "):
        race(file, effects, point.split()[1:])
        return
    store = Dying(file)
    store.point = point
    Effect.middle = point == "in the run"
    if "decision" in point:
        for one in store.entries(open_only=True):
            if one.state is State.AWAITING_APPROVAL:
                Desk(store, one.conversation, "a dying one").approve(one.key, digest=one.digest)
    while True:
        names = store.conversations()
        random.shuffle(names)
        for name in names:
            carry_on(store, effects, name)
        time.sleep(0.005)


def main() -> None:
    """Fork a worker for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are not kept
    for line in sys.stdin:
        file, effects, point = line.rstrip("\n").split("\t")
        pid = os.fork()
        if pid == 0:
            sys.stdin.close()
            code = 1
            try:
                random.seed()
                work(Path(file), Path(effects), point)
            except BaseException:  # noqa: BLE001 - the test reads it
                import traceback

                with effects_log(Path(effects)).open("a") as log:
                    traceback.print_exc(file=log)
            finally:
                os._exit(code)
        print(pid, flush=True)


def effects_log(effects: Path) -> Path:
    """Return where workers write what they should never have to."""
    return effects.with_suffix(".errors")


if __name__ == "__main__":
    import nursery  # the module of a tool is part of what a person agrees to, and has to be the tests' own

    nursery.main()
