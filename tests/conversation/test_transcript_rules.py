"""Transcripts: each rule of each provider finds what breaks it, and nothing that the adapters write breaks one."""

from __future__ import annotations

import copy
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillrun import Attachment, Outcome, ToolCall
from skillrun.conversation.messages import Answered, Ids, Reply, Said
from skillrun.conversation.models import AnthropicModel, OpenAIChatModel, OpenAIResponsesModel
from skillrun.conversation.models.base import fitted_name, stable
from skillrun.conversation.transcript import faults
from skillrun.tools.formats import format_of
from skillrun.tools.outcome import clean

if TYPE_CHECKING:
    from skillrun.conversation.messages import Message

MODELS = {"anthropic": AnthropicModel, "openai": OpenAIChatModel, "openai-responses": OpenAIResponsesModel}
WORD = {"type": "text", "text": "hi"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
URL = "data:image/png;base64,iVBO"
INLINE = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}


def tool_use(own: str, **more: Any) -> dict[str, Any]:
    """Return a call of Anthropic."""
    return {"type": "tool_use", "id": own, "name": "t", "input": {}, **more}


def tool_result(own: str, *content: Any, **more: Any) -> dict[str, Any]:
    """Return a result of Anthropic."""
    return {"type": "tool_result", "tool_use_id": own, "content": list(content or (WORD,)), **more}


def chat_call(own: str, name: str = "t", arguments: Any = "{}") -> dict[str, Any]:
    """Return a call of Chat Completions."""
    return {"id": own, "type": "function", "function": {"name": name, "arguments": arguments}}


def call_item(own: str, **more: Any) -> dict[str, Any]:
    """Return a call of Responses."""
    return {"type": "function_call", "call_id": own, "name": "t", "arguments": "{}", **more}


def output_item(own: str, output: Any = "x") -> dict[str, Any]:
    """Return a result of Responses."""
    return {"type": "function_call_output", "call_id": own, "output": output}


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
GOOD: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [THOUGHT, WORD, tool_use("a"), tool_use("b")]},
        {
            "role": "user",
            "content": [tool_result("b", WORD, IMAGE), tool_result("a", is_error=True), IMAGE, WORD],
        },
        {"role": "assistant", "content": [WORD]},
    ],
    "openai": [
        {"role": "system", "content": "be"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [chat_call("a"), chat_call("b")]},
        {"role": "tool", "tool_call_id": "b", "content": "x"},
        {"role": "tool", "tool_call_id": "a", "content": [WORD]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": ""},
    ],
    "openai-responses": [
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        call_item("a", id="fc_1"),
        {"type": "reasoning", "id": "rs_2", "summary": []},
        call_item("b", id="fc_2"),
        output_item("b", [{"type": "input_text", "text": ""}, {"type": "input_image", "image_url": URL}]),
        output_item("a", ""),
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
        {"role": "user", "content": "thanks"},
        {"type": "reasoning", "id": "rs_3", "summary": []},
        {"role": "assistant", "content": "bye"},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {
            "role": "model",
            "parts": [
                {"text": "so", "thoughtSignature": "s"},
                {"functionCall": {"name": "t", "args": {}, "id": "a"}},
                {"functionCall": {"name": "u", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "t", "id": "a", "response": {"output": "x"}}},
                {"functionResponse": {"name": "u", "response": {"error": "x"}}},
                INLINE,
            ],
        },
        {"role": "model", "parts": [{"text": "ok"}]},
    ],
}
# What is done to the good transcript of a provider (a path and what is put there, None removes it), and what is told.
BROKEN: list[tuple[str, list[tuple[Any, ...]], str]] = [
    ("anthropic", [(0, None)], "messages.0: the first message is the user's"),
    ("anthropic", [(0, "role", "system")], "messages.0: there is no role 'system'"),
    ("anthropic", [(3, "content", [])], "messages.3: a message has content"),
    ("anthropic", [(3, "content", "")], "messages.3.content.0: a text is not empty"),
    ("anthropic", [(0, "content", " \n")], "messages.0.content.0: a text is not empty"),
    ("anthropic", [(1, "content", 1, {"type": "text", "text": ""})], "messages.1.content.1: a text is not empty"),
    ("anthropic", [(3, "content", 0, IMAGE)], "messages.3.content.0: `image` has no place in a message of the assistant"),
    ("anthropic", [(2, "content", 3, THOUGHT)], "messages.2.content.3: `thinking` has no place in a message of the user"),
    ("anthropic", [(1, "content", 0, {"type": "thinking", "thinking": "x"})], "a thought has its `signature`"),
    ("anthropic", [(1, "content", 0, {"type": "redacted_thinking"})], "a thought has its `data`"),
    ("anthropic", [(1, "content", 2, "name", "a.b")], "messages.1.content.2: the name 'a.b' is none that the API takes"),
    ("anthropic", [(1, "content", 2, "input", "{}")], "messages.1.content.2: the input of a call is an object"),
    ("anthropic", [(1, "content", 2, "id", "a.b")], "messages.1: the id 'a.b' is none that the API takes"),
    ("anthropic", [(1, "content", 2, "id", "")], "messages.1: the id '' is none that the API takes"),
    ("anthropic", [(1, "content", 3, "id", "a")], "messages.1: the id 'a' is not unique"),
    (
        "anthropic",
        [(3, "content", [tool_use("a")]), (4, {"role": "user", "content": [tool_result("a")]})],
        "messages.3: the id 'a' is not unique",
    ),
    ("anthropic", [(2, "content", 0, None)], "messages.2: the call 'b' has no result right after it"),
    ("anthropic", [(2, None)], "messages.2: the call 'a' has no result right after it"),
    ("anthropic", [(2, None), (2, None)], "the end: the call 'a' has no result right after it"),
    ("anthropic", [(2, "content", 0, "tool_use_id", "a")], "messages.2: the call 'a' has more than one result"),
    ("anthropic", [(4, {"role": "user", "content": [tool_result("a")]})], "messages.4: the result 'a' belongs to no call"),
    ("anthropic", [(2, "content", 0, IMAGE), (2, "content", 2, tool_result("b"))], "results come before everything else"),
    ("anthropic", [(1, "content", [tool_use("a"), THOUGHT, tool_use("b")])], "messages.1: thoughts come before the calls"),
    ("anthropic", [(3, "content", [WORD, THOUGHT])], "messages.3: the last block can't be a thought"),
    ("anthropic", [(2, "content", 0, "content", [])], "messages.2.content.0: a result is not empty"),
    ("anthropic", [(2, "content", 0, "content", "")], "messages.2.content.0.content.0: a text is not empty"),
    ("anthropic", [(2, "content", 0, "content", 0, tool_use("c"))], "content.0.content.0: `tool_use` has no place in a result"),
    ("anthropic", [(2, "content", 0, "is_error", True)], "messages.2.content.0.content.1: an error holds text only"),
    ("anthropic", [(2, "content", 2, "source", "media_type", "image/bmp")], "messages.2.content.2: an image is PNG"),
    ("anthropic", [(2, "content", 0, "content", 1, "source", "data", "")], "messages.2.content.0.content.1: an image is"),
    ("openai", [(1, "role", "function")], "messages.1: there is no role 'function'"),
    ("openai", [(1, "content", None)], "messages.1: a message has content"),
    ("openai", [(7, "content", None)], "messages.7: a message has content"),
    ("openai", [(1, "content", [])], "messages.1: a message has content"),
    ("openai", [(1, "content", 5)], "messages.1: the content is a text or a list"),
    ("openai", [(3, "content", "")], "messages.3: a result is not empty"),
    ("openai", [(4, "content", 0, {"type": "image_url", "image_url": {"url": URL}})], "`image_url` has no place in a message of the tool"),
    ("openai", [(5, "content", 0, "image_url", "url", "data:image/bmp;base64,iVBO")], "messages.5.content.0: an image is"),
    ("openai", [(5, "content", 0, "image_url", "url", "data:image/png;base64,")], "messages.5.content.0: an image is"),
    ("openai", [(6, "content", [{"type": "image_url", "image_url": {"url": URL}}])], "messages.6: the pictures of a round are in one message"),
    ("openai", [(7, "tool_calls", [])], "messages.7: `tool_calls` is a list with calls"),
    ("openai", [(6, "tool_calls", [chat_call("c")])], "messages.6: `tool_calls` is a list with calls, in a message of the assistant"),
    ("openai", [(2, "tool_calls", 0, "id", "a" * 41)], "is none that the API takes"),
    ("openai", [(2, "tool_calls", 0, "id", "")], "messages.2: the id '' is none that the API takes"),
    ("openai", [(2, "tool_calls", 0, "id", "b")], "messages.2: the id 'b' is not unique"),
    ("openai", [(2, "tool_calls", 0, "function", "name", "a.b")], "messages.2: the name 'a.b' is none"),
    ("openai", [(2, "tool_calls", 0, "function", "name", "a" * 65)], "is none that the API takes"),
    ("openai", [(2, "tool_calls", 0, "function", "arguments", {})], "messages.2: a call is a function, its arguments a text"),
    ("openai", [(2, "tool_calls", 0, "type", None)], "messages.2: a call is a function, its arguments a text"),
    ("openai", [(3, None)], "messages.4: the call 'b' has no result right after it"),
    ("openai", [(3, {"role": "user", "content": "x"})], "messages.3: the call 'a' has no result right after it"),
    ("openai", [(3, None)] * 5, "the end: the call 'a' has no result right after it"),
    ("openai", [(3, "tool_call_id", "a")], "messages.5: the call 'a' has more than one result"),
    ("openai", [(8, {"role": "tool", "tool_call_id": "a", "content": "x"})], "the end: the result 'a' belongs to no call"),
    ("openai-responses", [(0, "content", [])], "input.0: a message has content"),
    ("openai-responses", [(0, "content", 0, "type", "output_text")], "input.0: `output_text` has no place in a message of the user"),
    ("openai-responses", [(7, "content", 0, "type", "input_text")], "input.7: `input_text` has no place in a message of the assistant"),
    ("openai-responses", [(2, "call_id", "a" * 65)], "is none that the API takes"),
    ("openai-responses", [(4, "call_id", "a")], "input.4: the id 'a' is not unique"),
    ("openai-responses", [(2, "name", "a.b")], "input.2: the name 'a.b' is none that the API takes"),
    ("openai-responses", [(2, "arguments", {})], "input.2: the arguments of a call are a text"),
    ("openai-responses", [(4, None)], "input.3: a thought is followed by what it led to"),
    ("openai-responses", [(10, None)], "input.9: a thought is followed by what it led to"),
    ("openai-responses", [(10, {"role": "user", "content": "x"})], "input.9: a thought is followed by what it led to"),
    ("openai-responses", [(3, "id", "rs_1")], "input.3: the item 'rs_1' is not unique"),
    ("openai-responses", [(5, None)], "input.6: the call 'b' has no result right after it"),
    ("openai-responses", [(5, {"role": "user", "content": "x"})], "input.5: the call 'a' has no result right after it"),
    ("openai-responses", [(5, None)] * 6, "the end: the call 'a' has no result right after it"),
    ("openai-responses", [(6, "call_id", "b")], "input.7: the call 'b' has more than one result"),
    ("openai-responses", [(11, output_item("a"))], "the end: the result 'a' belongs to no call"),
    ("openai-responses", [(6, "output", None)], "input.6: an output is a text, or a list of parts"),
    ("openai-responses", [(6, "output", [])], "input.6: an output is a text, or a list of parts"),
    ("openai-responses", [(5, "output", 0, "type", "text")], "input.5.output.0: `text` has no place in an output"),
    ("openai-responses", [(5, "output", 1, "image_url", "x")], "input.5.output.1: an image is"),
    ("gemini", [(0, "role", "assistant")], "contents.0: there is no role 'assistant'"),
    ("gemini", [(3, "parts", [])], "contents.3: a content has parts"),
    ("gemini", [(0, "parts", 0, "text", "")], "contents.0.parts.0: a text is not empty"),
    ("gemini", [(1, "role", "user")], "contents.1.parts.1: only the model calls"),
    ("gemini", [(2, "role", "model")], "contents.2.parts.0: the model answers no calls"),
    ("gemini", [(2, "parts", 0, "functionResponse", "response", "x")], "contents.2.parts.0: a response is an object"),
    ("gemini", [(2, "parts", 2, "inlineData", "mimeType", "image/bmp")], "contents.2.parts.2: an image is"),
    ("gemini", [(2, "parts", 1, None)], "contents.2: there are 1 function responses for 2 function calls"),
    ("gemini", [(2, None), (2, None)], "the end: there are 0 function responses for 2 function calls"),
    ("gemini", [(2, "parts", 1, "functionResponse", "name", "t")], "contents.2: the responses have not the names"),
    ("gemini", [(2, "parts", 0, "functionResponse", "id", "b")], "contents.2: the responses have not the ids"),
    ("gemini", [(1, "parts", 2, "functionCall", "id", "a")], "contents.1: the id 'a' is not unique"),
]  # fmt: skip


def changed(messages: list[dict[str, Any]], changes: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return a transcript with changes: each a path, and what is put there."""
    made = copy.deepcopy(messages)
    for *path, last, value in changes:
        place: Any = made
        for key in path:
            place = place[key]
        if value is None and isinstance(last, int):
            del place[last]
        elif isinstance(place, list) and last >= len(place):
            place.append(copy.deepcopy(value))
        else:
            place[last] = copy.deepcopy(value)
    return made


@pytest.mark.parametrize("provider", GOOD)
def test_a_good_transcript_has_no_faults(provider: str) -> None:
    """The validator lets through what the provider takes: results in any order, pictures, thoughts, empty where it may be."""
    assert faults(provider, GOOD[provider]) == []
    assert faults(provider, []) == ["messages: there are none"]


@pytest.mark.parametrize(("provider", "changes", "told"), BROKEN)
def test_each_rule_finds_what_breaks_it(provider: str, changes: list[tuple[Any, ...]], told: str) -> None:
    """One change to a good transcript, and the fault is told with its place."""
    found = faults(provider, changed(GOOD[provider], changes))
    assert any(told in one for one in found), found


def test_an_unknown_provider_is_a_key_error() -> None:
    """There is no validator for what nobody knows."""
    with pytest.raises(KeyError):
        faults("bard", [{}])


TEXTS = st.sampled_from(["", " ", "\n", "hello", "ü\ud800", "a\x00b\x1b[31m", "long " * 50])
NAMES = st.sampled_from(["add", "shop_find", "functions.add", "", "näme", "x" * 90, "a b"])
IDS = st.sampled_from(["", "x", "x", "call_1", "toolu_01", "a.b:c", "y" * 70, "é"])
ARGUMENTS = st.sampled_from(
    [{}, {"a": 1, "b": None}, {"a": "\ud800"}, None, "", '{"a": 1}', '{"a": ', "[1]", [1], 5]
)
ATTACHMENTS = st.sampled_from(
    [
        Attachment("a.png", "image/png", b"\x89PNG"),
        Attachment("a.bmp", "image/bmp", b"BM"),
        Attachment("a.txt", "text/plain", b"x"),
        Attachment("e.gif", "image/gif", b""),
    ]
)
CALLS = st.lists(
    st.builds(ToolCall, NAMES, ARGUMENTS, IDS, st.sampled_from([None, None, "shop"])), max_size=4
)
OUTCOMES = st.builds(
    Outcome, text=TEXTS, is_error=st.booleans(), attachments=st.lists(ATTACHMENTS, max_size=3).map(tuple)
)


def raw_anthropic(text: str, calls: list[ToolCall], *, thought: bool) -> list[dict[str, Any]]:
    """Return blocks as Anthropic sends them."""
    thoughts = [THOUGHT, {"type": "redacted_thinking", "data": "hidden"}] if thought else []
    used = [
        tool_use(one.id, name=one.name, input=one.arguments if isinstance(one.arguments, dict) else {})
        for one in calls
    ]
    return [*thoughts, {"type": "text", "text": text}, *used]


def raw_chat(text: str, calls: list[ToolCall], *, thought: bool) -> dict[str, Any]:
    """Return a message as OpenAI sends it, and as servers do that leave things out."""
    made: dict[str, Any] = {"role": "assistant"} if thought else {"role": "assistant", "content": text}
    used = [
        chat_call(one.id, one.name, one.arguments if isinstance(one.arguments, str) else None)
        for one in calls
    ]
    return made | {"tool_calls": used}


def raw_responses(number: int, text: str, calls: list[ToolCall], *, thought: bool) -> list[dict[str, Any]]:
    """Return items as OpenAI sends them."""
    items: list[dict[str, Any]] = []
    if text:
        part = {"type": "output_text", "text": text}
        items.append({"type": "message", "role": "assistant", "content": [part]})
    for one in calls:
        written = one.arguments if isinstance(one.arguments, str) else json.dumps(one.arguments)
        items.append(call_item(one.id, name=one.name, arguments=written))
    if thought:
        items.insert(0, {"type": "reasoning", "id": f"rs_{number}", "summary": []})
    return items


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Draw a conversation as a Conversation would hold it: what was said, replies of any provider, their outcomes."""
    messages: list[Message] = [Said(draw(TEXTS))]
    ids = Ids()
    for number in range(draw(st.integers(1, 6))):
        text, calls, thought = draw(TEXTS), draw(CALLS), draw(st.booleans())
        provider = draw(st.sampled_from(["anthropic", "openai", "openai-responses", "gemini", ""]))
        raw: Any = {
            "anthropic": lambda text=text, calls=calls, thought=thought: raw_anthropic(
                text, calls, thought=thought
            ),
            "openai": lambda text=text, calls=calls, thought=thought: raw_chat(text, calls, thought=thought),
            "openai-responses": lambda text=text, calls=calls, thought=thought, number=number: raw_responses(
                number, text, calls, thought=thought
            ),
        }.get(provider, lambda: None)()
        reply = ids.settled(Reply(text, tuple(calls), stable(raw), provider), number)
        messages.append(reply)
        if calls:
            messages.append(Answered(tuple(draw(OUTCOMES) for _ in calls)))
        if draw(st.booleans()):
            messages.append(Said(draw(TEXTS)))
    return messages


def answers(provider: str, written: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the id and the text of each result, in order."""
    if provider == "openai":
        return [(one["tool_call_id"], one["content"]) for one in written if one["role"] == "tool"]
    if provider == "openai-responses":
        items = [one for one in written if one.get("type") == "function_call_output"]
        return [
            (one["call_id"], one["output"] if isinstance(one["output"], str) else one["output"][0]["text"])
            for one in items
        ]
    blocks = [block for one in written for block in one["content"] if block["type"] == "tool_result"]
    return [(one["tool_use_id"], one["content"][0]["text"]) for one in blocks]


@given(histories())
def test_random_histories_have_no_faults(messages: list[Message]) -> None:
    """Each provider takes what its adapter writes, whatever was said and came of it, and gets every outcome by its call's id."""
    calls = [call for one in messages if isinstance(one, Reply) for call in one.calls]
    outcomes = [outcome for one in messages if isinstance(one, Answered) for outcome in one.outcomes]
    expected = [(call.id, clean(outcome.text)) for call, outcome in zip(calls, outcomes, strict=True)]
    for provider, model in MODELS.items():
        before = copy.deepcopy(messages)
        written = model(None, model="m", system="be brief").written(messages)
        assert faults(provider, written) == []
        assert answers(provider, written) == expected
        assert messages == before
        json.dumps(written, ensure_ascii=False).encode()  # as the clients do, which half a character stops


@given(histories())
def test_random_histories_are_accepted_by_gemini_too(messages: list[Message]) -> None:
    """What the format yields for outcomes fits the calls that it answers."""
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "hi"}]}]
    for before, message in itertools.pairwise(messages):
        if isinstance(message, Answered) and isinstance(before, Reply):
            named = [ToolCall(fitted_name(call.name), call.arguments, call.id) for call in before.calls]
            parts = [{"functionCall": {"name": one.name, "args": {}, "id": one.id}} for one in named]
            outcomes = [
                Outcome(one.text, is_error=one.is_error, attachments=one.attachments, call=call)
                for one, call in zip(message.outcomes, named, strict=True)
            ]
            contents += [{"role": "model", "parts": parts}, *format_of("gemini").results(outcomes)]
    assert faults("gemini", contents) == []
