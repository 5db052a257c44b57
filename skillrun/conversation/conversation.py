"""Conversation: drives the loop between a model and a toolbox. It brings no prompts, no memory and no plan of its own."""

from __future__ import annotations

import enum
import logging
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from skillrun.conversation import results
from skillrun.conversation.claims import Here
from skillrun.conversation.desk import Desk
from skillrun.conversation.entry import Entry, State
from skillrun.conversation.files import Files
from skillrun.conversation.messages import Answered, Ids, Message, Reply, Said, to_data
from skillrun.conversation.model import Calls, Model, Offer, Use
from skillrun.conversation.round import Round
from skillrun.conversation.store import MemoryStore, Store, checked_name
from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.tools.selection import INHERIT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from skillrun.tools.box import Toolbox, Turn
    from skillrun.tools.selection import Choice
    from skillrun.tools.task import Task

log: Final = logging.getLogger("skillrun.conversation")
STEPS: Final = 25
"""Replies of the model that one `ask` or `complete` may cost."""


class PendingCallsError(UsageError):
    """A new question while calls of the last reply have no result yet."""


class Progress(enum.Enum):
    """How far a conversation is."""

    NEW = "new"  # nothing was said yet
    GOING = "going"  # the next step can be taken
    WAITING = "waiting"  # calls wait for a person, a task, or another process
    SPENT = "spent"  # the budget of replies is used up
    DONE = "done"  # the model has answered


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a conversation is after a step: the model's last reply, and the calls that have no result yet.

    `look_again` is how many seconds it is worth to wait before the next look at the tasks, None when no task waits.
    """

    progress: Progress
    reply: Reply | None = None
    waiting: tuple[Entry, ...] = ()
    look_again: float | None = None

    @property
    def text(self) -> str:
        """What the model said last; empty when it said nothing."""
        return self.reply.text if self.reply is not None else ""


class Conversation:
    """One conversation of a model with the tools of a box.

    `model` takes the messages and an offer of tools and returns a reply (`skillrun.conversation.model.Model`).
    `store` keeps it; without one it is gone with the process. With the `name` of an earlier conversation it goes
    on where that one stood, in any process. `steps` bounds the model's replies for one question. `patience` is how
    many seconds a person has to agree or to answer; None is for ever. `who` is written beside the words given here.

    A call that waits for a person's agreement, for an answer or for a task holds no process and no thread:
    `ask` and `complete` return, and any process calls `complete` once there is something to go on with.
    Not for several threads at a time; several processes may use one store.
    """

    def __init__(
        self,
        box: Toolbox,
        model: Model,
        *,
        store: Store | None = None,
        name: str | None = None,
        steps: int = STEPS,
        patience: float | None = None,
        tools: Choice = INHERIT,
        who: str = "",
        here: Here | None = None,
    ) -> None:
        self.store: Store = store if store is not None else MemoryStore()
        self.name = checked_name(name if name is not None else secrets.token_hex(8))
        self.steps = steps
        folder = self.store.folder(self.name)
        turn, self.files = _with_files(box.turn(tools), None if folder is None else Files(folder))
        self.here = here if here is not None else Here()
        self.desk = Desk(self.store, self.name, who, self.here)
        self._model = model
        keep = None if self.files is None else self.files.keep
        self._round = Round(
            self.name,
            turn,
            replace(box.dispatcher, keep=keep, approve=None),
            self.store,
            self.here,
            files=self.files,
            patience=patience,
        )
        self._offer = Offer(turn)

    def __enter__(self) -> Conversation:  # noqa: PYI034 - Self came with Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave it as it stands: what waits goes on waiting, here or in another process."""

    def ask(self, text: str, *, choice: Use | str = Use.AUTO, calls: Calls = Calls.MANY) -> Standing:
        """Say something to the model, and complete what comes of it.

        `choice` is whether it may, must or must not call tools, or the name of the one tool that it has to call, until
        tools have run. Raises PendingCallsError while calls have no result: settle them, or `cancel` them.
        """
        self.say(text)
        return self.complete(choice=choice, calls=calls)

    def say(self, text: str) -> None:
        """Add what a person said, without an answer yet. Raises PendingCallsError as `ask` does."""
        if not text.strip():
            raise UsageError(error("empty-message", "nothing was said: no model takes an empty message"))
        messages = self.store.messages(self.name)
        if self.desk.open():
            message = "calls of the last reply have no result yet"
            advice = "settle them and `complete`, or `cancel` them"
            raise PendingCallsError(error("pending-calls", message, help=advice))
        if not self.store.append(self.name, len(messages), Said(text)):
            raise UsageError(
                error("conversation-moved", f"somebody else spoke in `{self.name}` at the same time")
            )

    def complete(self, *, choice: Use | str = Use.AUTO, calls: Calls = Calls.MANY) -> Standing:
        """Go on as far as it goes: make the calls that can be made, have the model answer, and so on.

        A call that waits for a task is looked after once. Returns when the model has answered, when calls wait,
        or when the budget is used up; then call it again. Raises what the model raises; everything stays as it was.
        """
        self._offer = Offer(self._offer.turn, self._known(choice), calls)
        spent, resume = 0, True
        while True:
            if spent >= self.steps and not self.desk.open():
                return self._standing(Progress.SPENT)
            standing, asked = self._step(resume=resume)
            spent += asked
            resume = False
            if standing.progress is not Progress.GOING:
                return standing

    def step(self) -> Standing:
        """Take one step: make the calls of the last reply, or have the model answer once."""
        return self._step(resume=True)[0]

    def waiting(self) -> tuple[Entry, ...]:
        """Return the calls that have no result yet."""
        return tuple(self.desk.open())

    def tasks(self) -> tuple[Task, ...]:
        """Return the tasks that calls wait for, as they were when they were last looked at."""
        return tuple(self._task(one) for one in self.waiting() if one.state is State.PAUSED)

    def refresh(self) -> tuple[Task, ...]:
        """Look at the tasks that calls wait for, without carrying the calls on."""
        self._round.abandon()
        found = []
        for one in self.waiting():
            if one.state is State.PAUSED:
                fresh = self._task(one).refresh()
                self.store.swap(one, replace(one, task=fresh.state()))
                found.append(fresh)
        return tuple(found)

    def cancel(self) -> None:
        """End every call that has no result: the model reads that it was cancelled. Tasks are cancelled too."""
        self._round.cancel()
        for one in self.waiting():
            if one.task is not None:
                try:
                    self._task(one).cancel()
                except Exception:  # the other calls are to be ended as well
                    log.exception("the task of %r was not cancelled", one.call.name)
            self.desk.cancel(one.key)

    def history(self) -> tuple[Message, ...]:
        """Return the whole conversation as a model is sent it; the results are made from the calls each time."""
        messages = self.store.messages(self.name)
        entries: dict[int, list[Entry]] = {}
        for one in self.store.entries(self.name):
            entries.setdefault(one.seq, []).append(one)
        made: list[Message] = []
        for seq, message in enumerate(messages):
            made.append(message)
            found = entries.get(seq, [])
            if found and all(one.outcome is not None for one in found):
                outcomes = (results.from_data(one.outcome or {}, one.call, self.files) for one in found)
                made.append(Answered(tuple(outcomes)))
        return tuple(made)

    def _step(self, *, resume: bool) -> tuple[Standing, int]:
        """Take one step, and say how many replies it cost."""
        self._round.abandon()
        messages = self.store.messages(self.name)
        if not messages:
            return self._standing(Progress.NEW), 0
        last = messages[-1]
        if isinstance(last, Reply) and not last.calls:
            return self._standing(Progress.DONE), 0
        if isinstance(last, Reply) and self.waiting():
            self._round.advance(len(messages) - 1, resume=resume)
            # Whoever had to call a tool has called one.
            self._offer = Offer(self._offer.turn, Use.AUTO, self._offer.calls)
            return self._standing(Progress.WAITING if self.waiting() else Progress.GOING), 0
        return self._answered(len(messages)), 1

    def _answered(self, seq: int) -> Standing:
        """Have the model answer."""
        history = self.history()
        ids = Ids()
        ids.take(history)
        reply = ids.settled(self._model(history, self._offer), seq)
        try:
            to_data(reply)
        except TypeError as wrong:
            message = f"the model's reply can't be kept: {wrong}"
            raise UsageError(error("model-reply", message)) from None
        if self.store.append(self.name, seq, reply, self._round.proposed(reply, seq)):
            return self._standing(Progress.GOING if reply.calls else Progress.DONE)
        return self._standing(
            Progress.GOING
        )  # another process was first, and its reply is the one that counts

    def _standing(self, progress: Progress) -> Standing:
        replies = [one for one in self.store.messages(self.name) if isinstance(one, Reply)]
        waiting = self.waiting() if progress is Progress.WAITING else ()
        waits = [_poll(one.task) for one in waiting if one.state is State.PAUSED and one.task is not None]
        return Standing(progress, replies[-1] if replies else None, waiting, min(waits, default=None))

    def _task(self, entry: Entry) -> Task:
        from skillrun.tools.task import Task  # noqa: PLC0415 - few conversations have one

        tool = self._offer.turn.find(entry.call)
        state = entry.task or {}
        return Task.load(state) if tool is None else tool.task(state, tool_call=entry.call)

    def _known(self, choice: Use | str) -> Use | str:
        if isinstance(choice, Use):
            return choice
        if choice in {one.value for one in Use}:
            return Use(choice)
        if not any(one.full_name == choice for one in self._offer.turn.tools):
            message = f"there is no tool `{choice}` that the model could have to call"
            raise UsageError(
                error("no-such-tool", message, help="give auto, required, none, or a tool's name")
            )
        return choice


def _poll(task: Mapping[str, Any]) -> float:
    return float(task.get("poll_interval") or 1.0)


def _with_files(turn: Turn, files: Files | None) -> tuple[Turn, Files | None]:
    """Return a turn with the two tools that look into the conversation's files; without room for them, no files."""
    taken = {one.full_name for one in turn.tools}
    own = () if files is None else files.tools()
    if not own or len(taken) + len(own) > turn.box.max_tools or any(one.full_name in taken for one in own):
        return turn, None
    return replace(turn, tools=(*turn.tools, *own)), files
