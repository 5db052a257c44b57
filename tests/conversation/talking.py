"""What the tests of conversations share: a model that says what a test wrote down, and a time that a test sets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from skillrun.conversation.claims import Here
from skillrun.conversation.conversation import Conversation, Progress
from skillrun.conversation.messages import Answered, Message, Reply
from skillrun.conversation.store import MemoryStore
from skillrun.tools.box import Toolbox
from skillrun.tools.outcome import Outcome, ToolCall
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.conversation.entry import Entry
    from skillrun.conversation.model import Offer
    from skillrun.conversation.store import Store


def calls(*pairs: tuple[str, Any], text: str = "") -> Reply:
    """Return a reply with calls, each a tool's name and its arguments."""
    return Reply(text, tuple(ToolCall(name, arguments) for name, arguments in pairs))


@dataclass
class Script:
    """A model that gives one reply after the other; which comes next is read from the messages, in any process."""

    replies: Sequence[Reply | str]
    seen: list[Sequence[Message]] = field(default_factory=list)
    offers: list[Offer] = field(default_factory=list)

    def __call__(self, messages: Sequence[Message], offer: Offer) -> Reply:
        """Return the next reply."""
        self.seen.append(messages)
        self.offers.append(offer)
        said = sum(isinstance(one, Reply) for one in messages)
        reply = self.replies[said] if said < len(self.replies) else "done"
        return reply if isinstance(reply, Reply) else Reply(reply)


@dataclass
class Clock:
    """A time that a test sets: `boot` counts from the start of the machine, `wall` is what people read."""

    boot: float = 1_000.0
    wall: float = 1_700_000_000.0

    def pass_(self, seconds: float) -> None:
        """Let time pass on both."""
        self.boot += seconds
        self.wall += seconds


@dataclass
class Machine:
    """One host with processes that a test starts and ends."""

    clock: Clock = field(default_factory=Clock)
    alive: dict[int, float] = field(default_factory=dict)
    host: str = "here"
    boot_id: str = "first"
    last: int = 100

    def process(self, pid: int | None = None) -> Here:
        """Start a process and return how it sees itself."""
        self.last += 1
        number = self.last if pid is None else pid
        self.alive[number] = self.clock.boot + self.last  # no two are born at the same time
        return Here(
            host=self.host,
            boot=self.boot_id,
            clock=lambda: self.clock.boot,
            wall=lambda: self.clock.wall,
            born=self.alive.get,
            pid=lambda: number,
        )

    def kill(self, here: Here) -> None:
        """End a process."""
        self.alive.pop(here.pid(), None)


def talk(
    tools: Sequence[Any],
    replies: Sequence[Reply | str],
    *,
    store: Store | None = None,
    name: str = "talk",
    **settings: Any,
) -> Conversation:
    """Return a conversation of a scripted model with some tools."""
    box = settings.pop("box", None) or Toolbox(tools, **settings.pop("box_settings", {}))
    kept = MemoryStore() if store is None else store
    return Conversation(box, Script(replies), store=kept, name=name, **settings)


def outcomes(conversation: Conversation) -> tuple[Outcome, ...]:
    """Return the outcomes of the first reply that had calls."""
    return next(one for one in conversation.history() if isinstance(one, Answered)).outcomes


def one_waiting(conversation: Conversation) -> Entry:
    """Return the one call that has no result yet."""
    (entry,) = conversation.waiting()
    return entry


def whole(conversation: Conversation) -> bool:
    """Whether every reply with calls is followed by one result a call, in their order."""
    history = conversation.history()
    for place, message in enumerate(history):
        if not isinstance(message, Reply) or not message.calls:
            continue
        after = history[place + 1]
        if not isinstance(after, Answered):
            return False
        if [one.call and one.call.id for one in after.outcomes] != [one.id for one in message.calls]:
            return False
        if any(not one.text.strip() for one in after.outcomes):
            return False
    return True


def settle_all(conversation: Conversation, machine: Machine | None = None, *, rounds: int = 200) -> None:
    """Be the person who settles whatever waits, until the model has answered."""
    desk = conversation.desk
    for _ in range(rounds):
        if conversation.complete().progress is Progress.DONE:
            return
        for entry in desk.waiting():
            if entry.state.value == "awaiting_approval":
                desk.approve(entry.key, digest=entry.digest)
            elif entry.state.value == "awaiting_input":
                desk.decline(entry.key)
            else:
                desk.give_up(entry.key)
        if machine is not None:
            machine.clock.pass_(100)
    raise AssertionError(f"still waiting: {[(one.key, one.state) for one in conversation.waiting()]}")


def as_first(entry: Entry) -> Entry:
    """Return an entry without what counts its changes."""
    return replace(entry, version=0)


class AskTeam(Tool):
    """Ask the team something you can't answer from the docs."""

    def execute(self, question: str) -> Any:
        """Ask."""
        self.owner.append("before")
        answer = self.ask(question, answer={"type": "string", "title": "Answer", "required": True})
        if not answer.accepted:
            return {"error": "Nobody answered"}
        sure = self.ask("Are you sure?", sure={"type": "boolean"})
        return {"answer": answer["answer"], "sure": sure["sure"]}
