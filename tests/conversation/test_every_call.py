"""Every call has one result whatever a tool does, and the history is one that every model takes."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any

import pytest
from talking import Script, calls, one_waiting, outcomes, talk, whole

from skillrun.conversation import round as round_
from skillrun.conversation.conversation import Conversation, PendingCallsError, Progress
from skillrun.conversation.entry import State
from skillrun.conversation.messages import Answered, Reply, Said
from skillrun.conversation.model import Calls, Use
from skillrun.conversation.sqlite import SqliteStore
from skillrun.errors import UsageError
from skillrun.tools.box import Toolbox
from skillrun.tools.outcome import Attachment, Outcome, ToolCall, ToolError
from skillrun.tools.tool import Tool, tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skillrun.conversation.store import Store


class StrangeError(BaseException):
    """No Exception."""


def broken_text() -> Any:
    """Return something whose text fails."""

    class Broken:
        def __str__(self) -> str:
            raise ValueError

    return Broken()


JUNK: dict[str, Callable[[], Any]] = {
    "object": object,
    "lock": threading.Lock,
    "bytes": lambda: b"\xff",
    "nan": lambda: float("nan"),
    "nan inside": lambda: {"a": [float("inf"), float("nan")]},
    "half a character": lambda: "\ud800",
    "control characters": lambda: "a\x00\x1b[2Jb",
    "nothing": lambda: None,
    "empty": lambda: "",
    "blank": lambda: " \n ",
    "a function": lambda: lambda: 1,
    "an exception": lambda: ValueError("returned"),
    "deep": lambda: deep(100),
    "outcome of junk": lambda: Outcome("x", structured=object()),
    "outcome with a lock": lambda: Outcome("x", structured={"a": threading.Lock()}),
    "outcome without text": lambda: Outcome(""),
    "attachment of text": lambda: Attachment("a", "b", "text"),  # type: ignore[arg-type]
    "attachment of junk": lambda: Attachment(object(), object(), b"x"),  # type: ignore[arg-type]
    "outcome with a list": lambda: Outcome("x", attachments=[1]),  # type: ignore[arg-type]
    "broken text": broken_text,
    "keys": lambda: {1: 2, None: 3},
}


def deep(levels: int) -> Any:
    """Return a list in a list in a list."""
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize("junk", JUNK)
def test_junk_from_a_tool_is_a_result(store: Store, junk: str) -> None:
    """Whatever comes back from a tool, its call is answered with a text, and the conversation goes on."""
    odd = tool(lambda: JUNK[junk](), name="odd")  # noqa: PLW0108 - called each time
    conversation = talk([odd], [calls(("odd", {}), ("odd", {})), "over"], store=store)
    assert conversation.ask("go").text == "over"
    assert whole(conversation)
    for one in outcomes(conversation):
        assert one.text.strip()
        one.text.encode()
        assert "\x1b" not in one.text


@pytest.mark.parametrize(
    "problem",
    [
        ValueError("bad"),
        SystemExit(3),
        ToolError("later", retryable=True),
        AssertionError(),
        RecursionError("x"),
    ],
    ids=repr,
)
def test_what_a_tool_raises_is_a_result(store: Store, problem: BaseException) -> None:
    """An exception of a tool is an error that the model reads; its neighbour is made all the same."""

    @tool
    def bad() -> str:
        """Raise."""
        raise problem

    good = tool(lambda: "fine", name="good")
    conversation = talk([bad, good], [calls(("bad", {}), ("good", {})), "over"], store=store)
    assert conversation.ask("go").text == "over"
    first, second = outcomes(conversation)
    assert first.is_error
    assert second.text == "fine"


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), StrangeError("strange")], ids=repr)
@pytest.mark.parametrize("together", [False, True])
def test_ctrl_c_in_the_middle_of_a_call(store: Store, problem: BaseException, together: bool) -> None:
    """It comes out of the conversation; the call it hit has the truth for a result, and nothing is left running."""

    @tool
    def bad() -> str:
        """Raise."""
        raise problem

    good = tool(lambda: "fine", name="good")
    pairs = [("bad", {}), ("good", {})] if together else [("bad", {})]
    conversation = talk([bad, good], [calls(*pairs), "over"], store=store)
    with pytest.raises(type(problem)):
        conversation.ask("go")
    states = {one.call.name: one.state for one in store.entries("talk")}
    assert states["bad"] is State.ANSWERED
    assert State.RUNNING not in states.values()
    again = talk([bad, good], [calls(*pairs), "over"], store=store)
    assert again.complete().text == "over"
    assert "may have been done in part" in outcomes(again)[0].text


def test_raise_on_error_raises_once_all_calls_have_their_results(store: Store) -> None:
    """The exception comes out, the results of all calls are there, and the conversation can go on after it."""
    made: list[str] = []

    @tool(raise_on_error=True)
    def bad() -> str:
        """Raise."""
        raise LookupError("no database")

    good = tool(lambda: made.append("good") or "fine", name="good")
    conversation = talk([bad, good], [calls(("bad", {}), ("good", {})), "over"], store=store)
    with pytest.raises(LookupError, match="no database"):
        conversation.ask("go")
    assert made == ["good"]
    assert conversation.waiting() == ()
    assert conversation.complete().text == "over"
    assert outcomes(conversation)[0].text == "Error (bad): no database"


def test_unknown_tools_and_wrong_arguments_are_results(store: Store) -> None:
    """A tool that is not there, arguments that do not fit or are no map: errors to read, at their places."""
    add = tool(lambda a: a, name="add", parameters={"a": {"type": "integer"}})
    reply = calls(("nobody", {}), ("add", {"b": 1}), ("add", "no json"), ("add", None), ("add", {"a": 1}))
    conversation = talk([add], [reply, "over"], store=store)
    assert conversation.ask("go").text == "over"
    assert [one.is_error for one in outcomes(conversation)] == [True, True, True, True, False]
    assert whole(conversation)


def test_a_hundred_calls_side_by_side_keep_their_order(store: Store) -> None:
    """Some of a hundred calls wait for a person; each result stands at its call's place all the same."""

    class Echo(Tool):
        """Says it again."""

        def needs_approval(self, call: ToolCall, arguments: Any) -> bool:
            """Say whether."""
            return bool(arguments["n"] % 10 == 0)

        def execute(self, n: int) -> str:
            """Say it."""
            return f"said {n}"

    reply = calls(*(("echo", {"n": n}) for n in range(100)))
    conversation = talk([Echo], [reply, "over"], store=store)
    waiting = conversation.ask("go").waiting
    assert [one.call.arguments["n"] for one in waiting] == list(range(0, 100, 10))
    for one in reversed(waiting):
        conversation.desk.approve(one.key)
    assert conversation.complete().text == "over"
    assert [one.text for one in outcomes(conversation)] == [f"said {n}" for n in range(100)]
    assert whole(conversation)


def test_ids_are_made_unique_and_plain(store: Store) -> None:
    """Ids that providers repeat, leave out, make long or odd: unique in the conversation, 40 plain characters at most."""
    good = tool(lambda: "fine", name="good")
    odd = ["", "a", "a", "x" * 41, "b c", None, 7, "call_1_0"]
    first = Reply("", tuple(ToolCall("good", {}, one) for one in odd))  # type: ignore[arg-type]
    second = Reply("", (ToolCall("good", {}, "a"),))
    conversation = talk([good], [first, second, "over"], store=store)
    assert conversation.ask("go").text == "over"
    ids = [one.id for said in conversation.history() if isinstance(said, Reply) for one in said.calls]
    assert len(set(ids)) == len(ids) == 9
    assert all(one.replace("_", "").isalnum() and len(one) <= 40 for one in ids)
    assert ids[1] == "a"
    assert whole(conversation)


def test_the_budget_ends_a_model_that_calls_for_ever(store: Store) -> None:
    """The calls of the last reply are made before it stops, so the history is whole; `complete` gives a new budget."""
    good = tool(lambda: "fine", name="good")
    conversation = talk([good], [calls(("good", {}))] * 7, store=store, steps=3)
    assert conversation.ask("go").progress is Progress.SPENT
    assert sum(isinstance(one, Reply) for one in conversation.history()) == 3
    assert isinstance(conversation.history()[-1], Answered)
    assert conversation.complete().progress is Progress.SPENT
    assert conversation.complete().progress is Progress.DONE


def test_the_choice_is_reset_after_tools_ran(store: Store) -> None:
    """Who had to call a tool has called one: the next reply may be text, or the loop would never end."""
    good = tool(lambda: "fine", name="good")
    for choice in (Use.REQUIRED, "good", "required"):
        conversation = talk([good], [calls(("good", {})), "over"], store=store, name=f"c{len(str(choice))}")
        conversation.ask("go", choice=choice, calls=Calls.ONE)
        model = conversation._model
        assert isinstance(model, Script)
        assert [one.choice for one in model.offers][1] is Use.AUTO
        assert model.offers[0].choice == (Use.REQUIRED if choice == "required" else choice)
        assert [one.calls for one in model.offers] == [Calls.ONE] * 2
    with pytest.raises(UsageError, match="no tool"):
        conversation.ask("go", choice="nobody")


def test_a_new_question_while_calls_wait_is_refused_and_cancel_frees_the_way(store: Store) -> None:
    """Nothing is closed silently: PendingCallsError, until they are settled or cancelled."""
    gated = tool(lambda: "fine", name="gated", requires_approval=True)
    conversation = talk([gated], [calls(("gated", {})), "sorry", "yes?"], store=store)
    conversation.ask("go")
    with pytest.raises(PendingCallsError):
        conversation.say("more")
    assert len(store.messages("talk")) == 2
    conversation.cancel()
    assert conversation.ask("never mind").text == "sorry"
    assert "cancelled and not made" in outcomes(conversation)[0].text
    with pytest.raises(UsageError):
        conversation.ask("  ")


def test_what_a_model_raises_leaves_all_as_it_was(store: Store) -> None:
    """A model that fails, or whose reply can't be kept: the exception comes out, and the same step can be taken again."""
    replies: list[Any] = [
        RuntimeError("overloaded"),
        Reply("", (ToolCall("x", {"a": object()}),)),
        Reply("well"),
    ]

    def model(messages: Any, offer: Any) -> Reply:
        said = replies.pop(0)
        if isinstance(said, Exception):
            raise said
        assert isinstance(said, Reply)
        return said

    conversation = Conversation(Toolbox(), model, store=store, name="talk")
    with pytest.raises(RuntimeError, match="overloaded"):
        conversation.ask("go")
    with pytest.raises(UsageError, match="can't be kept"):
        conversation.complete()
    assert store.messages("talk") == [Said("go")]
    assert conversation.complete().text == "well"


def test_a_store_that_fails_one_call_ends_no_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """One result can't be written: the others are, nothing that runs is killed for it, and then the error comes out."""
    from skillrun.conversation.store import StoreError
    from skillrun.problem import error

    cancelled: list[int] = []
    monkeypatch.setattr(round_.Round, "cancel", lambda self: cancelled.append(1) if self.under_way else None)
    echo = tool(lambda n: f"said {n}", name="echo", parameters={"n": {"type": "integer"}})
    reply = calls(*(("echo", {"n": n}) for n in range(4)))
    conversation = talk([echo], [reply, "over"], store=store)
    real = store.swap
    wrong = [True]

    def swap(old: Any, new: Any) -> Any:
        if new.state is State.ANSWERED and new.position == 0 and wrong.pop():
            wrong.append(False)
            raise StoreError(error("conversation-store", "no room"))
        return real(old, new)

    holder = conversation._round
    object.__setattr__(holder, "store", Swapping(store, swap))
    with pytest.raises(StoreError):
        conversation.ask("go")
    assert [one.position for one in conversation.waiting()] == [0]
    assert cancelled == []
    assert conversation.complete().text == "over"
    assert [one.text for one in outcomes(conversation)] == [f"said {n}" for n in range(4)]


class Swapping:
    """A store with another `swap`."""

    def __init__(self, inner: Store, swap: Any) -> None:
        self.inner = inner
        self.swap = swap

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_a_script_that_waited_long_for_its_turn_gets_a_new_claim_or_does_not_start(
    file: Path, machine: Any
) -> None:
    """The claim is looked at when a script starts: renewed where too little is left, and without it nothing starts."""
    conversation = talk(
        [Late], [calls(("late", {})), "over"], store=SqliteStore(file), here=machine.process()
    )
    Late.clock = machine.clock
    Late.taken = False
    Late.store = conversation.store
    assert conversation.ask("go").text == "over"
    assert outcomes(conversation)[0].text == "made"
    conversation = talk([Late], [calls(("late", {})), "over"], store=conversation.store, name="b",
                        here=machine.process())  # fmt: skip
    Late.taken = True
    Late.here = machine.process()
    conversation.ask("go")
    (entry,) = conversation.store.entries("b")
    assert entry.outcome is not None
    assert "cancelled" in entry.outcome["text"]
    assert Late.started == 1


class Late(Tool):
    """A tool that starts something after a long wait, as a script does that waits for its turn."""

    clock: Any
    here: Any
    taken: bool
    store: Any
    started = 0

    def execute(self) -> str:
        """Wait, then start."""
        from skillrun.tools.underway import underway

        self.clock.pass_(500)
        (entry,) = [one for one in self.store.entries() if one.state is State.RUNNING]
        before = entry.claim.until
        if self.taken:
            from skillrun.conversation.desk import Desk

            Desk(self.store, "b", here=self.here).cancel(entry.key)
        underway().planned(None, None)  # type: ignore[arg-type]
        type(self).started += 1
        (entry,) = [one for one in self.store.entries() if one.state is State.RUNNING]
        assert entry.claim.until > before
        return "made"


def test_entries_survive_a_store_as_they_are(store: Store) -> None:
    """What a call is comes back from a store as it was put there, whatever state it is in."""
    gated = tool(lambda: "fine", name="gated", requires_approval=True)
    conversation = talk([gated], [calls(("gated", {})), "over"], store=store, who="me", patience=60)
    conversation.ask("go")
    conversation.desk.approve("1.0")
    entry = one_waiting(conversation)
    assert entry.decision is not None
    assert entry.decision.who == "me"
    assert store.swap(entry, entry) == dataclasses.replace(entry, version=entry.version + 1)
    assert store.swap(entry, entry) is None
