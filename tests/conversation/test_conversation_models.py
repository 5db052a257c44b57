"""Models: the real clients of Anthropic and OpenAI, in whole conversations with a server as strict as the vendors'."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from model_server import Answer, Call

from skillrun import Attachment, Outcome, Tool, Toolbox, ToolCall, UsageError, tool
from skillrun.conversation.messages import Answered, Ids, Reply, Said
from skillrun.conversation.model import Calls, Offer, Use
from skillrun.conversation.models import (
    AnthropicModel,
    ModelError,
    OpenAIChatModel,
    OpenAIResponsesModel,
)
from skillrun.conversation.transcript import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from model_server import ModelServer

    from skillrun.conversation.messages import Message
    from skillrun.conversation.models.base import Adapter

PROVIDERS = {
    "anthropic": AnthropicModel,
    "openai": OpenAIChatModel,
    "openai-responses": OpenAIResponsesModel,
}
PICTURE = Attachment("a.png", "image/png", b"\x89PNG")


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    """Give each provider in turn."""
    return str(request.param)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail() -> str:
    """Fail."""
    raise RuntimeError("no\x1b[31m luck")


@tool
def look() -> Any:
    """Return a picture."""
    return ["here", PICTURE]


@tool
def nothing() -> None:
    """Return nothing."""


class FindOrders(Tool):
    """Finds orders."""

    namespace = "shop"
    namespace_description = "Orders"

    def execute(self, customer: str) -> str:
        """Find."""
        return f"3 orders of {customer}"


@pytest.fixture
def box() -> Iterator[Toolbox]:
    """Give a toolbox."""
    with Toolbox([add, fail, look, nothing, FindOrders]) as made:
        yield made


def converse(model: Adapter, box: Toolbox, question: str, *more: str) -> list[Message]:
    """Drive a conversation: the smallest loop there is."""
    messages: list[Message] = []
    ids = Ids()
    for said in (question, *more):
        messages.append(Said(said))
        while True:
            offer = Offer(box.turn())
            reply = ids.settled(model(tuple(messages), offer), len(messages))
            messages.append(reply)
            if not reply.calls:
                break
            messages.append(Answered(tuple(offer.turn.answer_all(reply.calls))))
    return messages


def replies(messages: list[Message]) -> list[Reply]:
    """Return the replies among messages."""
    return [one for one in messages if isinstance(one, Reply)]


def script() -> list[Any]:
    """Return a conversation that has it all: thoughts, parallel calls, an error, a picture, nothing, ids that repeat."""
    return [
        Answer(
            "Let me see. ",
            (Call("add", {"a": 1, "b": 2}, "x"), Call("fail", {}, "x"), Call("look", {}, None)),
            "hm",
        ),
        Answer("", (Call("nothing", {}, "x"), Call("nope", {}, "y" * 90)), "hm hm"),
        Answer("", (Call("shop_find_orders", {"customer": "Ada"}, "x"),)),
        Answer("It is 3."),
        Answer("", (Call("functions.add", {"a": 1}, "z"),)),
        Answer("Done."),
    ]


@pytest.mark.parametrize("streams", [False, True])
def test_a_whole_conversation(
    provider: str, streams: object, clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """Tools, parallel calls, errors, pictures, empty results, a second question: no request is refused."""
    server.answers = script()
    heard: list[str] = []
    model = PROVIDERS[provider](
        clients[provider], model="m", system="Be brief.", stream=heard.append if streams else None
    )
    messages = converse(model, box, "What is 1 + 2?", "And now?")
    assert server.refused == []
    assert server.answers == []
    assert [one.text for one in replies(messages)] == ["Let me see. ", "", "", "It is 3.", "", "Done."]
    outcomes = [one.text for message in messages if isinstance(message, Answered) for one in message.outcomes]
    assert outcomes[:4] == ["3", "Error (fail): no luck", "here", "(no output)"]
    assert "there is no tool `nope`" in outcomes[4]
    assert outcomes[5] == "3 orders of Ada"
    assert "there is no tool `functions.add`" in outcomes[6]
    ids = [call.id for one in replies(messages) for call in one.calls]
    assert len(ids) == len(set(ids)) == 7
    assert "".join(heard) == ("Let me see. It is 3.Done." if streams else "")
    assert len(heard) > 5 if streams else heard == []
    first = json.dumps(server.requests[0])
    assert "Be brief." in first
    assert "tool_choice" not in server.requests[0]


def test_streaming_gives_the_same_reply(
    provider: str, clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """Text, calls, ids and the provider's own message are those of a reply that came whole."""
    answer = Answer("Well ü", (Call("add", {"a": 1, "b": None}, "p"), Call("look", {}, "q")), "thought")
    for ways in ({}, {"last_output": False}, {"item_events": False}):
        server.answers = [answer, replace(answer, **ways)]
        plain = PROVIDERS[provider](clients[provider], model="m")
        streamed = PROVIDERS[provider](clients[provider], model="m", stream=lambda _: None)
        offer = Offer(box.turn())
        one, other = (model([Said("x")], offer) for model in (plain, streamed))
        strip = _without_item_ids
        assert (one.text, one.calls, strip(one.raw)) == (other.text, other.calls, strip(other.raw))
        assert one.provider == provider
        assert len(one.calls) == 2


def _without_item_ids(raw: Any) -> Any:
    """Leave out the ids that the server makes anew for every response."""
    return [{**one, "id": None} for one in raw] if isinstance(raw, list) else raw


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])  # Chat Completions has no thoughts
def test_thoughts_come_back_as_they_were(
    provider: str, clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """What the provider said is sent back byte for byte, before its calls; only the ids of the calls are ours."""
    server.answers = [Answer("So", (Call("add", {"a": 1, "b": 2}, "no good: " * 9),), "deep"), Answer("3")]
    model = PROVIDERS[provider](clients[provider], model="m")
    messages = converse(model, box, "?")
    sent = server.requests[1]["input" if provider == "openai-responses" else "messages"]
    came = replies(messages)[0].raw
    back = sent[1]["content"] if provider == "anthropic" else sent[1:4]
    own, key = replies(messages)[0].calls[0].id, "id" if provider == "anthropic" else "call_id"
    assert own == "call_1_0"
    assert back == [*came[:2], {**came[2], key: own}]
    assert back[0]["type"] in {"thinking", "reasoning"}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
def test_arguments_that_are_no_json_reach_the_check(
    provider: str, streams: object, clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """The model reads that they are none, and nothing was called; its own text goes back as it was."""
    server.answers = [Answer("", (Call("add", '{"a": 1, ', "p"), Call("nothing", "", "q"))), Answer("sorry")]
    model = PROVIDERS[provider](clients[provider], model="m", stream=print if streams else None)
    messages = converse(model, box, "?")
    assert server.refused == []
    answered = next(one for one in messages if isinstance(one, Answered))
    assert [one.text for one in answered.outcomes] == [
        "Error (add): invalid arguments: they are no JSON",
        "(no output)",
    ]
    assert '{\\"a\\": 1, ' in json.dumps(server.requests[1])


def test_half_a_character_does_not_end_a_conversation(
    provider: str, clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """JSON can say half a character, and no request can carry it back; nor what the vendor adds to its answers alone."""
    server.answers = [Answer("a\ud800b", (Call("nope\ud800", {"a\ud800": "\ud800"}),)), Answer("ok")]
    messages = converse(PROVIDERS[provider](clients[provider], model="m"), box, "x\ud800")
    assert [one.text for one in replies(messages)] == ["a?b", "ok"]
    assert replies(messages)[0].calls[0].name == "nope?"
    sent = server.requests[1]["input" if provider == "openai-responses" else "messages"]
    assert "nope_" in json.dumps(sent)
    assert provider != "openai" or not any("annotations" in one for one in sent)


@pytest.mark.parametrize("streams", [False, True])
def test_a_call_that_was_cut_off_is_not_run(
    streams: object, clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """Anthropic completes half an object by itself; half a path must not be taken for a path."""
    server.answers = [
        Answer("", (Call("look", {}, "p"), Call("add", {"a": 1, "b": 2}, "q")), why="max_tokens"),
        Answer("again"),
    ]
    model = AnthropicModel(clients["anthropic"], model="m", max_tokens=20, stream=print if streams else None)
    messages = converse(model, box, "?")
    answered = next(one for one in messages if isinstance(one, Answered))
    assert [one.is_error for one in answered.outcomes] == [False, True]
    assert server.refused == []
    assert [one["max_tokens"] for one in server.requests] == [20, 20]


def test_a_pause_of_the_provider_is_gone_over(
    clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """A reply that paused for the provider's own search goes on, and is one reply."""
    server.answers = [Answer("One. ", why="pause_turn"), Answer("Two. ", why="pause_turn"), Answer("Three.")]
    reply = AnthropicModel(clients["anthropic"], model="m")([Said("?")], Offer(box.turn()))
    assert reply.text == "One. Two. Three."
    assert [len(one["messages"]) for one in server.requests] == [1, 2, 2]
    assert [len(one["messages"][-1]["content"]) for one in server.requests] == [1, 1, 2]


def test_a_pause_has_an_end(clients: dict[str, Any], server: ModelServer, box: Toolbox) -> None:
    """A provider that only ever pauses is asked ten times."""
    server.answers = [Answer("x", why="pause_turn")] * 11
    reply = AnthropicModel(clients["anthropic"], model="m")([Said("?")], Offer(box.turn()))
    assert (reply.text, len(server.answers)) == ("x" * 10, 1)


def test_a_stream_that_ends_too_early_is_an_error(
    provider: str, clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """Half a reply is none: the error says to ask again."""
    server.answers = [Answer("This is long enough to be cut", (Call("add", {"a": 1, "b": 2}),), broken=True)]
    model = PROVIDERS[provider](clients[provider], model="m", stream=lambda _: None)
    with pytest.raises(ModelError, match="the stream ended before the reply did") as caught:
        model([Said("?")], Offer(box.turn()))
    assert "ask the model again" in str(caught.value.problem.help)


@pytest.mark.parametrize("streams", [False, True])
def test_a_response_that_failed_is_an_error(
    streams: object, clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """A response may fail with status 200; its own words are told."""
    server.answers = [Answer("half", failed="out of luck")]
    model = OpenAIResponsesModel(clients["openai"], model="m", stream=print if streams else None)
    with pytest.raises(ModelError, match="out of luck"):
        model([Said("?")], Offer(box.turn()))


def test_an_error_within_a_stream_is_told(clients: dict[str, Any], server: ModelServer, box: Toolbox) -> None:
    """Responses sends an event for it and ends; its own words are told."""
    server.answers = [Answer("half", error="overloaded")]
    model = OpenAIResponsesModel(clients["openai"], model="m", stream=lambda _: None)
    with pytest.raises(ModelError, match="overloaded"):
        model([Said("?")], Offer(box.turn()))


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
def test_a_refusal_is_a_reply(
    provider: str, streams: object, clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """What OpenAI's models will not do they say in a field of its own; it is text, and goes back as it came."""
    server.answers = [Answer("I will not.", refusal=True), Answer("ok")]
    heard: list[str] = []
    model = PROVIDERS[provider](clients[provider], model="m", stream=heard.append if streams else None)
    messages = converse(model, box, "?", "Why?")
    assert [one.text for one in replies(messages)] == ["I will not.", "ok"]
    assert '"refusal": "I will not."' in json.dumps(server.requests[1])
    assert "".join(heard) == ("I will not.ok" if streams else "")
    assert server.refused == []


def test_what_the_client_raises_comes_out(
    provider: str, clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """The vendor's own error reaches the caller."""
    model = PROVIDERS[provider](clients[provider], model="m", tools=[])
    with pytest.raises(Exception, match="an empty list") as caught:
        model([Said("?")], Offer(box.turn()))
    assert type(caught.value).__name__ == "BadRequestError"


CHOICES: dict[str, dict[Any, dict[str, Any]]] = {
    "anthropic": {
        (Use.AUTO, Calls.MANY): {},
        (Use.AUTO, Calls.ONE): {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        (Use.REQUIRED, Calls.MANY): {"tool_choice": {"type": "any"}},
        (Use.REQUIRED, Calls.ONE): {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        (Use.NONE, Calls.MANY): {"tool_choice": {"type": "none"}},
        (Use.NONE, Calls.ONE): {"tool_choice": {"type": "none"}},
        ("add", Calls.MANY): {"tool_choice": {"type": "tool", "name": "add"}},
        ("shop_find_orders", Calls.ONE): {
            "tool_choice": {"type": "tool", "name": "shop_find_orders", "disable_parallel_tool_use": True}
        },
    },
    "openai": {
        (Use.AUTO, Calls.MANY): {},
        (Use.AUTO, Calls.ONE): {"parallel_tool_calls": False},
        (Use.REQUIRED, Calls.MANY): {"tool_choice": "required"},
        (Use.REQUIRED, Calls.ONE): {"tool_choice": "required", "parallel_tool_calls": False},
        (Use.NONE, Calls.MANY): {"tool_choice": "none"},
        ("add", Calls.MANY): {"tool_choice": {"type": "function", "function": {"name": "add"}}},
        ("shop_find_orders", Calls.ONE): {
            "tool_choice": {"type": "function", "function": {"name": "shop_find_orders"}},
            "parallel_tool_calls": False,
        },
    },
    "openai-responses": {
        (Use.AUTO, Calls.MANY): {},
        (Use.AUTO, Calls.ONE): {"parallel_tool_calls": False},
        (Use.REQUIRED, Calls.MANY): {"tool_choice": "required"},
        (Use.NONE, Calls.MANY): {"tool_choice": "none"},
        ("add", Calls.ONE): {
            "tool_choice": {"type": "function", "name": "add"},
            "parallel_tool_calls": False,
        },
    },
}


@pytest.mark.parametrize(
    ("provider", "offered"), [(one, key) for one, table in CHOICES.items() for key in table]
)
def test_a_choice_is_made_in_the_providers_words(
    provider: str, offered: tuple[Any, Calls], clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """Auto, required, none, one tool; one call or many: as each API has it, and nothing where it is the API's own way."""
    server.answers = [Answer("ok")]
    PROVIDERS[provider](clients[provider], model="m")([Said("?")], Offer(box.turn(), *offered))
    [request] = server.requests
    sent = {key: request[key] for key in ("tool_choice", "parallel_tool_calls") if key in request}
    assert sent == CHOICES[provider][offered]
    assert request["tools"]


def test_a_namespaced_tool_is_not_forced_on_responses(clients: dict[str, Any], box: Toolbox) -> None:
    """The API can't, so it is an error that says what to do instead."""
    model = OpenAIResponsesModel(clients["openai"], model="m")
    with pytest.raises(UsageError, match="in a namespace") as caught:
        model([Said("?")], Offer(box.turn(), "shop_find_orders"))
    assert "Use.REQUIRED" in str(caught.value.problem.help)


def test_a_tool_that_is_not_offered_is_not_forced(
    provider: str, clients: dict[str, Any], box: Toolbox
) -> None:
    """A name that is not there, a turn without it, a turn without tools: errors, and nothing is sent."""
    model = PROVIDERS[provider](clients[provider], model="m")
    for turn, choice in (
        (box.turn(), "sub"),
        (box.turn(["look"]), "add"),
        (box.turn([]), "add"),
        (box.turn([]), Use.REQUIRED),
    ):
        with pytest.raises(UsageError, match=r"not offered|no tools"):
            model([Said("?")], Offer(turn, choice))


def test_a_turn_without_tools_says_nothing_about_them(
    provider: str, clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """Neither a list nor a choice is sent: each API refuses one without the other."""
    server.answers = [Answer("ok"), Answer("ok")]
    model = PROVIDERS[provider](clients[provider], model="m")
    for choice in (Use.NONE, Use.AUTO):
        model([Said("?")], Offer(box.turn([]), choice, Calls.ONE))
    assert server.refused == []
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & {
        key for one in server.requests for key in one
    }


def test_options_stand_over_the_rest(
    provider: str, clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """What the caller gives goes into every request as it is; `strict` goes to the definitions."""
    server.answers = [Answer("ok")]
    auto = {"type": "auto"} if provider == "anthropic" else "auto"
    model = PROVIDERS[provider](
        clients[provider], model="m", strict=True, metadata={"user_id": "u"}, tool_choice=auto
    )
    model([Said("?")], Offer(box.turn(), Use.REQUIRED))
    [request] = server.requests
    assert (request["metadata"], request["tool_choice"]) == ({"user_id": "u"}, auto)
    assert '"strict": true' in json.dumps(request["tools"])


def test_a_conversation_moves_from_provider_to_provider(
    clients: dict[str, Any], server: ModelServer, box: Toolbox
) -> None:
    """What one provider said is written anew for another, from its text and its calls; nobody's thoughts go along."""
    messages: list[Message] = [Said("?")]
    ids = Ids()
    for number, provider in enumerate([*PROVIDERS, *PROVIDERS]):
        namespaced = provider == "openai-responses"
        used = Call("find_orders", {"customer": "A"}, "q", "shop") if namespaced else Call("look", {}, "q")
        server.answers = [Answer(f"step {number}", (Call("add", {"a": 1, "b": 1}, "p"), used), "private")]
        offer = Offer(box.turn())
        reply = ids.settled(PROVIDERS[provider](clients[provider], model="m")(messages, offer), number)
        messages += [reply, Answered(tuple(offer.turn.answer_all(reply.calls)))]
        assert not any(one.is_error for one in messages[-1].outcomes)
    assert server.refused == []
    for provider, model in PROVIDERS.items():
        written = json.dumps(model(None, model="m").written(messages))
        assert all(f"step {number}" in written for number in range(6))
        assert written.count("private") == (0 if provider == "openai" else 2)
        assert ("shop_find_orders" in written) == (provider != "openai-responses")


def test_what_another_provider_said_is_not_sent_as_it_came(provider: str) -> None:
    """A message of one provider is no message of another, even where it looks like one."""
    model = PROVIDERS[provider](None, model="m")
    anew = model.written([Said("a"), Reply("kept"), Said("b")])
    for other in {*PROVIDERS, "gemini"} - {provider}:
        for raw in ([{"type": "text", "text": "raw"}], {"role": "assistant", "content": "raw"}):
            assert model.written([Said("a"), Reply("kept", (), raw, other), Said("b")]) == anew


def test_a_call_of_a_namespace_keeps_it_where_there_are_any(provider: str) -> None:
    """Written anew, the call is `find` of `shop` for Responses, and `shop_find` elsewhere."""
    reply = Reply("", (ToolCall("find", {}, "a", "shop"),))
    written = PROVIDERS[provider](None, model="m").written([Said("?"), reply, Answered((Outcome("x"),))])
    spaced = ["find", "shop"] if provider == "openai-responses" else ["shop_find"]
    assert [one for one in ("find", "shop", "shop_find") if f'"{one}"' in json.dumps(written)] == spaced


def test_what_is_said_after_outcomes_joins_them_on_anthropic(box: Toolbox) -> None:
    """One message of the user: results first, then pictures of an error, then the words. No text is empty."""
    reply = Reply("", (ToolCall("look", {}, "a"), ToolCall("look", {}, "b")))
    good, bad = Outcome("", attachments=(PICTURE,)), Outcome("no", is_error=True, attachments=(PICTURE,))
    # The model said nothing to the results: an empty message would be refused, so there is none.
    messages = [Said(" "), reply, Answered((good, bad)), Reply("", (), [], "anthropic"), Said("go on")]
    written = AnthropicModel(None, model="m").written(messages)
    assert faults("anthropic", written) == []
    assert [one["role"] for one in written] == ["user", "assistant", "user"]
    assert written[0]["content"] == [{"type": "text", "text": "(nothing)"}]
    kinds = [one["type"] for one in written[2]["content"]]
    assert kinds == ["tool_result", "tool_result", "image", "text"]
    assert [len(one["content"]) for one in written[2]["content"][:2]] == [2, 1]
    assert written[2]["content"][0]["content"][0]["text"] == "(no output)"


def test_pictures_are_one_message_after_the_group_on_chat() -> None:
    """Tool messages hold text; all pictures of a round follow in one message of the user."""
    reply = Reply("", (ToolCall("look", {}, "a"), ToolCall("look", {}, "b")))
    answered = Answered((Outcome("x", attachments=(PICTURE,)), Outcome("y", attachments=(PICTURE,))))
    written = OpenAIChatModel(None, model="m").written([Said("?"), reply, answered, Said("go on")])
    assert faults("openai", written) == []
    assert [one["role"] for one in written] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert len(written[4]["content"]) == 2


def test_a_reply_that_ended_within_a_thought_is_left_out() -> None:
    """Neither API takes a thought that led to nothing, and it would be refused for ever."""
    thought = [{"type": "thinking", "thinking": "x", "signature": "s"}]
    item = [{"type": "reasoning", "id": "rs_1", "summary": []}]
    first = AnthropicModel(None, model="m").written(
        [Said("a"), Reply("", (), thought, "anthropic"), Said("b")]
    )
    second = OpenAIResponsesModel(None, model="m").written(
        [Said("a"), Reply("", (), item, "openai-responses"), Said("b")]
    )
    assert [one["role"] for one in first] == ["user"]
    assert [one["role"] for one in second] == ["user", "user"]


def test_a_reply_whose_calls_were_changed_is_written_anew(provider: str) -> None:
    """Where the calls are no longer those of the provider's message, the message would lie; text and calls are told."""
    raw = {
        "anthropic": [{"type": "tool_use", "id": "p", "name": "add", "input": {}}],
        "openai": {
            "role": "assistant",
            "tool_calls": [{"id": "p", "function": {"name": "add", "arguments": ""}}],
        },
        "openai-responses": [{"type": "function_call", "call_id": "p", "name": "add", "arguments": ""}],
    }[provider]
    written = PROVIDERS[provider](None, model="m").written(
        [Said("a"), Reply("kept", (), raw, provider), Said("b")]
    )
    assert faults(provider, written) == []
    assert "kept" in json.dumps(written)
    assert "add" not in json.dumps(written)


def test_calls_without_outcomes_are_not_sent(provider: str) -> None:
    """An open call, a missing or an extra outcome: an error of ours, which names them, and not a lost conversation."""
    model = PROVIDERS[provider](None, model="m")
    reply = Reply("", (ToolCall("add", {}, "a"), ToolCall("look", {}, "b")))
    one = Outcome("x")
    for messages in (
        [Said("?"), reply],
        [Said("?"), reply, Said("more")],
        [Said("?"), reply, Answered((one,))],
        [Said("?"), reply, Answered((one, one, one))],
        [Said("?"), Answered((one,))],
        [Said("?"), Reply("x"), Answered(())],
        [Said("?"), reply, Answered((one, one)), Answered((one, one))],
    ):
        with pytest.raises(UsageError, match=r"not answered: `add`, `look`|outcomes for"):
            model.written(messages)


def test_faults_are_logged_before_a_send(
    clients: dict[str, Any], server: ModelServer, box: Toolbox, caplog: pytest.LogCaptureFixture
) -> None:
    """With logging at DEBUG what a provider is going to refuse is told first."""
    caplog.set_level(logging.DEBUG, logger="skillrun.conversation")
    raw = [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "y"}]
    model = AnthropicModel(clients["anthropic"], model="m")
    with pytest.raises(Exception, match="signature"):
        model([Said("?"), Reply("y", (), raw, "anthropic"), Said("?")], Offer(box.turn()))
    assert "a thought has its `signature`" in caplog.text
    assert server.refused


def test_no_sdk_is_imported() -> None:
    """The adapters work around a client that somebody made: importing them brings in no SDK."""
    import subprocess
    import sys

    program = "import sys, skillrun.conversation.models; print({'anthropic', 'openai'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
