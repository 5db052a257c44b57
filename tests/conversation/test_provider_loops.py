"""Loops: a Conversation with the real clients, in all that makes it wait, in two lives of the program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from model_server import Answer, Call

from skillrun import Attachment, Toolbox, tool
from skillrun.conversation.conversation import Conversation, PendingCallsError, Progress
from skillrun.conversation.entry import State
from skillrun.conversation.messages import Answered, Reply
from skillrun.conversation.models import AnthropicModel, OpenAIChatModel, OpenAIResponsesModel
from skillrun.conversation.sqlite import SqliteStore
from skillrun.tools.asking import ask

if TYPE_CHECKING:
    from pathlib import Path

    from model_server import ModelServer

    from skillrun.conversation.models.base import Adapter

PROVIDERS = {
    "anthropic": AnthropicModel,
    "openai": OpenAIChatModel,
    "openai-responses": OpenAIResponsesModel,
}


def tools(ran: list[str]) -> list[Any]:
    """Make tools that say when they ran."""

    @tool
    def add(a: int, b: int) -> int:
        ran.append("add")
        return a + b

    @tool(requires_approval=True)
    def send(to: str) -> str:
        ran.append(f"send {to}")
        return f"sent to {to}"

    @tool
    def name() -> str:
        ran.append("name")
        given = ask("What is it called?", title={"type": "string"})
        return f"called {given['title']}" if given.accepted else "no name"

    @tool
    def look() -> Any:
        ran.append("look")
        return ["here", Attachment("a.png", "image/png", b"\x89PNG")]

    return [add, send, name, look]


def model_of(provider: str, clients: dict[str, Any], *, streams: object) -> Adapter:
    """Make a model."""
    return PROVIDERS[provider](clients[provider], model="m", stream=(lambda _: None) if streams else None)


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_conversation_waits_and_goes_on_in_another_life(
    provider: str, streams: object, clients: dict[str, Any], server: ModelServer, tmp_path: Path
) -> None:
    """Parallel calls of which two want a yes and one an answer: what can run runs, the rest waits in the store.

    Another program with the same store says yes, no and a name; then one request carries all results in order.
    """
    ran: list[str] = []
    calls = (
        Call("send", {"to": "Ada"}, "x"),
        Call("add", {"a": 1, "b": 2}, "x"),
        Call("send", {"to": "Eve"}, ""),
        Call("name", {}, "y" * 80),
        Call("look", {}, "x"),
    )
    server.answers = [Answer("I will.", calls, "deep"), Answer("Done."), Answer("You are welcome.")]
    with Toolbox(tools(ran)) as box:
        model = model_of(provider, clients, streams=streams)
        first = Conversation(box, model, store=SqliteStore(tmp_path / "s.db"), name="talk")
        standing = first.ask("Do it", choice="required")
        assert standing.progress is Progress.WAITING
        assert standing.text == "I will."
        assert sorted(set(ran)) == ["add", "look", "name"]
        with pytest.raises(PendingCallsError):
            first.ask("And?")
    assert len(server.requests) == 1

    ran.clear()
    with Toolbox(tools(ran)) as box:
        model = model_of(provider, clients, streams=streams)
        second = Conversation(box, model, store=SqliteStore(tmp_path / "s.db"), name="talk", who="me")
        one, other, asked = second.waiting()
        assert [entry.state for entry in (one, other)] == [State.AWAITING_APPROVAL] * 2
        second.desk.approve(one.key, digest=one.digest)
        second.desk.deny(other.key, reason="not to Eve")
        second.desk.answer(asked.key, {"title": "Max"})
        standing = second.complete()
        assert (standing.progress, standing.text) == (Progress.DONE, "Done.")
        assert sorted(ran) == ["name", "send Ada"]
        assert second.ask("Thanks").text == "You are welcome."
    assert server.refused == []
    sent = json.dumps(server.requests[1])
    told = ["sent to Ada", '"3"', "not to Eve", "called Max", "here"]
    places = [sent.rindex(one) for one in told]
    assert places == sorted(places)
    assert "iVBO" in sent
    required = {"type": "any"} if provider == "anthropic" else "required"
    assert [one.get("tool_choice") for one in server.requests] == [required, None, None]
    if provider != "openai":
        assert "deep" in sent


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_conversation_that_is_cancelled_goes_on(
    provider: str, clients: dict[str, Any], server: ModelServer, tmp_path: Path
) -> None:
    """Calls that wait are ended; the model reads that, and the next question is not refused for them."""
    server.answers = [Answer("", (Call("send", {"to": "Ada"}), Call("look"))), Answer("Fine.")]
    with Toolbox(tools([])) as box:
        talk = Conversation(
            box, model_of(provider, clients, streams=False), store=SqliteStore(tmp_path / "s.db")
        )
        assert talk.ask("Do it").progress is Progress.WAITING
        talk.cancel()
        assert talk.ask("Leave it").text == "Fine."
    assert server.refused == []
    assert "cancelled" in json.dumps(server.requests[1])
    assert "Leave it" in json.dumps(server.requests[1])


def test_each_life_may_have_another_provider(
    clients: dict[str, Any], server: ModelServer, tmp_path: Path
) -> None:
    """A stored conversation goes on with whoever answers next."""
    lives = [*PROVIDERS, *reversed(PROVIDERS)]
    for number, provider in enumerate(lives):
        server.answers = [
            Answer(f"Step {number}", (Call("add", {"a": 1, "b": 1}, "x"), Call("look")), "own"),
            Answer("ok"),
        ]
        with Toolbox(tools([])) as box:
            model = model_of(provider, clients, streams=number % 2)
            talk = Conversation(box, model, store=SqliteStore(tmp_path / "s.db"), name="talk")
            assert talk.ask(f"Question {number}").text == "ok"
    assert server.refused == []
    last = json.dumps(server.requests[-1])
    assert all(f"Step {number}" in last and f"Question {number}" in last for number in range(len(lives)))
    replies = [one for one in talk.history() if isinstance(one, Reply)]
    assert [one.provider for one in replies] == [one for one in lives for _ in range(2)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_the_vendor_refuses_leaves_the_conversation_as_it_was(
    provider: str, clients: dict[str, Any], server: ModelServer
) -> None:
    """An error in the middle is the caller's to see; asked again, the results are still there and no tool runs twice."""
    ran: list[str] = []
    server.answers = [Answer("", (Call("add", {"a": 1, "b": 2}),)), Answer(status=500), Answer("3")]
    with Toolbox(tools(ran)) as box:
        talk = Conversation(box, model_of(provider, clients, streams=False))
        with pytest.raises(Exception, match="out of order"):
            talk.ask("?")
        assert talk.complete().text == "3"
    assert ran == ["add"]
    assert sum(isinstance(one, Answered) for one in talk.history()) == 1
    assert server.refused == []
