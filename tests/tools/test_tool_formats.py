"""Formats: 200 tools in the words of each provider, accepted by the types of its own SDK."""

from __future__ import annotations

import base64
import copy
import json
import re
from typing import Any, Literal

import pytest

from skillrun import Attachment, Outcome, Tool, Toolbox, ToolCall, UsageError, tool
from skillrun.tools.formats import FORMATS, format_of
from skillrun.tools.formats.strict import AnthropicBudget, openai_strict

PROPERTY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def varied(count: int) -> list[Tool]:
    """Make tools with every kind of schema: none, nested, unions, lists, enumerations, long texts."""
    kinds: list[dict[str, Any]] = [
        {},
        {"text": {"type": "string", "description": "A text\nwith two lines"}},
        {"n": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3}, "x": {"type": "number"}},
        {
            "mode": {"type": "string", "enum": ["a", "b"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        {
            "o": {
                "type": "object",
                "properties": {"p": {"type": "boolean"}},
                "required": ["p"],
                "additionalProperties": False,
            }
        },
        {
            "u": {"anyOf": [{"type": "string"}, {"type": "boolean"}]},
            "pair": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        },
        {
            "any": {"type": "object"},
            "lists": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        },
    ]
    made = []
    for number in range(count):
        schema = {"type": "object", "properties": copy.deepcopy(kinds[number % len(kinds)])}
        schema["required"] = list(schema["properties"])[: number % 2]
        spaced = (
            {"namespace": f"space-{number % 5}", "namespace_description": "A group"}
            if number % 3 == 0
            else {}
        )
        made.append(
            Tool.create(
                name=f"tool_{number}",
                description=f"Does thing {number}.",
                parameters=schema,
                execute=lambda _: "x",
                defer=number % 7 == 0,
                **spaced,
            )
        )
    return made


@pytest.fixture(scope="module")
def turn() -> Any:
    """Give a turn with 200 tools."""
    return Toolbox(varied(200), max_tools=200).turn()


@pytest.mark.parametrize("strict", [False, True])
def test_anthropic_takes_them(turn: Any, strict: bool) -> None:
    """The SDK's own types validate every definition, its schema transformer takes every strict one."""
    pytest.importorskip("anthropic", reason="the Anthropic SDK is not installed")
    import pydantic
    from anthropic.types import ToolUnionParam
    from anthropic.types.message_param import MessageParam

    made = turn.definitions("anthropic", strict=strict)
    pydantic.TypeAdapter(list[ToolUnionParam]).validate_python(made)
    assert [one["name"] for one in made[1:]] == [one.full_name for one in turn.tools]
    assert made[0]["type"].startswith("tool_search_tool_")
    assert sum(one.get("defer_loading", False) for one in made) == sum(one.defer for one in turn.tools)
    results = format_of("anthropic").results(outcomes())
    pydantic.TypeAdapter(list[MessageParam]).validate_python(results)
    assert len(results) == 1


@pytest.mark.parametrize("strict", [False, True])
def test_openai_chat_takes_them(turn: Any, strict: bool) -> None:
    """Chat Completions: deferred tools are behind `tool_search`, names fit in 64 characters."""
    pytest.importorskip("openai", reason="the OpenAI SDK is not installed")
    import pydantic
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

    made = turn.definitions("openai", strict=strict)
    pydantic.TypeAdapter(list[ChatCompletionToolParam]).validate_python(made)
    names = [one["function"]["name"] for one in made]
    assert "tool_search" in names
    assert not {one.full_name for one in turn.tools if one.defer} & set(names)
    assert any(one["function"]["strict"] for one in made) == strict
    pydantic.TypeAdapter(list[ChatCompletionMessageParam]).validate_python(
        format_of("openai").results(outcomes())
    )


@pytest.mark.parametrize("strict", [False, True])
def test_openai_responses_takes_them(turn: Any, strict: bool) -> None:
    """Responses: namespaces with a description, functions within, `strict` always said, the provider's search."""
    pytest.importorskip("openai", reason="the OpenAI SDK is not installed")
    import pydantic
    from openai.types.responses import ResponseInputItemParam
    from openai.types.responses.tool_param import ToolParam

    made = turn.definitions("openai-responses", strict=strict)
    pydantic.TypeAdapter(list[ToolParam]).validate_python(made)
    spaces = [one for one in made if one["type"] == "namespace"]
    assert len(spaces) == 5
    assert all(space["description"] and space["tools"] for space in spaces)
    functions = [one for one in made if one["type"] == "function"] + [
        one for space in spaces for one in space["tools"]
    ]
    assert len(functions) == 200
    assert all("strict" in one for one in functions)
    assert made[-1]["type"] == "tool_search"
    pydantic.TypeAdapter(list[ResponseInputItemParam]).validate_python(
        format_of("openai-responses").results(outcomes())
    )


def test_gemini_takes_them(turn: Any) -> None:
    """Gemini: one tool of declarations with plain JSON Schema, and none for none."""
    pytest.importorskip("google.genai", reason="the Google SDK is not installed")
    from google.genai import types

    made = [types.Tool.model_validate(one) for one in turn.definitions("gemini")]
    declarations = made[0].function_declarations or []
    assert len(declarations) == len(turn.listed)
    assert all(one.parameters_json_schema for one in declarations)
    assert Toolbox([]).turn().definitions("gemini") == []
    content = [types.Content.model_validate(one) for one in format_of("gemini").results(outcomes())]
    assert len([part for part in content[0].parts or [] if part.function_response]) == 3


def test_mcp_takes_them(turn: Any) -> None:
    """MCP: every tool and every result is valid by the SDK's types."""
    pytest.importorskip("mcp", reason="the MCP SDK is not installed")
    from mcp import types

    for one in turn.definitions("mcp"):
        types.Tool.model_validate(one)
    assert len(turn.definitions("mcp")) == 200
    for one in format_of("mcp").results(outcomes()):
        types.CallToolResult.model_validate(one)
    assert [one["isError"] for one in format_of("mcp").results(outcomes())] == [False, True, False]


def outcomes() -> list[Outcome]:
    """Return three outcomes: a text with a picture, an error, data."""
    picture = Attachment("a.png", "image/png", b"\x89PNG")
    return [
        Outcome(
            "fine",
            attachments=(picture, Attachment("b.bin", "application/octet-stream", b"x")),
            call=ToolCall("a", {}, "call_1"),
        ),
        Outcome("Error (b): no", is_error=True, call=ToolCall("b", {}, "call_2")),
        Outcome('{"a": 1}', structured={"a": 1}, call=ToolCall("c", {}, "call_3")),
    ]


def test_every_call_is_answered_once_and_in_order() -> None:
    """Each provider's rule for a whole round: one message or one item a call, ids kept, images where they may stand."""
    chat = format_of("openai").results(outcomes())
    assert [one["role"] for one in chat] == ["tool", "tool", "tool", "user"]
    assert [one["tool_call_id"] for one in chat[:3]] == ["call_1", "call_2", "call_3"]
    [message] = format_of("anthropic").results(outcomes())
    assert [one["tool_use_id"] for one in message["content"]] == ["call_1", "call_2", "call_3"]
    assert [one["is_error"] for one in message["content"]] == [False, True, False]
    assert message["content"][0]["content"][1]["source"]["data"] == base64.b64encode(b"\x89PNG").decode()
    assert [one["call_id"] for one in format_of("openai-responses").results(outcomes())] == [
        "call_1",
        "call_2",
        "call_3",
    ]
    for name in FORMATS:
        assert format_of(name).results([]) == []


REPLIES: dict[str, dict[str, Any]] = {
    "anthropic": {
        "content": [
            {"type": "text", "text": "x"},
            {"type": "tool_use", "id": "i", "name": "t", "input": {"a": 1}},
        ]
    },
    "openai": {
        "choices": [
            {"message": {"tool_calls": [{"id": "i", "function": {"name": "t", "arguments": '{"a": 1}'}}]}}
        ]
    },
    "openai-responses": {
        "output": [
            {"type": "reasoning"},
            {"type": "function_call", "call_id": "i", "name": "t", "arguments": '{"a": 1}'},
        ]
    },
    "gemini": {
        "candidates": [
            {
                "content": {
                    "parts": [{"text": "x"}, {"functionCall": {"id": "i", "name": "t", "args": {"a": 1}}}]
                }
            }
        ]
    },
}


@pytest.mark.parametrize("provider", REPLIES)
def test_calls_are_read_from_a_reply(provider: str) -> None:
    """Names, arguments and ids come out as they were; a reply without a call has none."""
    box = Toolbox([Tool.create(name="t", parameters={"a": {"type": "integer"}}, execute=lambda args: args)])
    [call] = format_of(provider).calls(REPLIES[provider])
    assert box.turn().answer(call).structured == {"a": 1}
    if provider != "gemini":
        assert call.id == "i"
    assert format_of(provider).calls({}) == []


def test_schemas_are_the_least_that_all_take(turn: Any) -> None:
    """D-06: an object with properties and a list of required ones, always; property names that every API takes; no null."""
    for one in turn.definitions("openai", native_search=False):
        schema = one["function"]["parameters"]
        assert schema["type"] == "object"
        assert isinstance(schema["properties"], dict)
        assert set(schema["required"]) <= set(schema["properties"])
        assert schema["additionalProperties"] is False
        assert all(PROPERTY.fullmatch(key) for key in schema["properties"])
        assert None not in schema.values()


def test_references_are_written_out() -> None:
    """A schema with `$defs` is inlined; one that contains itself keeps them; one that looks elsewhere is an error."""
    point = {"type": "object", "properties": {"x": {"type": "number"}}}
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/point", "description": "A point"}},
        "$defs": {"point": point},
    }
    made = Tool.create(name="t", parameters=schema, execute=print)
    [definition] = Toolbox([made]).turn().definitions("mcp")
    assert definition["inputSchema"]["properties"]["a"] == {**point, "description": "A point"}
    assert "$defs" not in definition["inputSchema"]
    tree = {
        "type": "object",
        "properties": {"t": {"$ref": "#/$defs/t"}},
        "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}},
    }
    [definition] = Toolbox([Tool.create(name="t", parameters=tree, execute=print)]).turn().definitions("mcp")
    assert "$defs" in definition["inputSchema"]
    for reference in ("https://example.com/schema", "other.json", "file:///etc/passwd"):
        with pytest.raises(UsageError, match="nothing is looked up"):
            Tool.create(
                name="t",
                parameters={"type": "object", "properties": {"a": {"$ref": reference}}},
                execute=print,
            )


@pytest.mark.parametrize(
    "root", [{"anyOf": []}, {"oneOf": [{}]}, {"allOf": [{}]}, {"enum": [1]}, {"const": 1}, {"not": {}}]
)
def test_what_no_api_takes_at_the_root_is_an_error(root: dict[str, Any]) -> None:
    """A composition at the root is refused by Anthropic and by OpenAI, so it makes no tool."""
    with pytest.raises(UsageError, match="at the root"):
        Tool.create(name="t", parameters={"type": "object", **root}, execute=print)


def test_strict_budgets_are_kept() -> None:
    """Anthropic's 20 tools, 24 optional parameters and 16 unions hold over the set; the rest goes without strict."""

    def box(count: int, properties: dict[str, Any]) -> list[bool]:
        tools = [
            Tool.create(name=f"t{n}", parameters={"type": "object", "properties": properties}, execute=print)
            for n in range(count)
        ]
        return ["strict" in one for one in Toolbox(tools).turn().definitions("anthropic", strict=True)]

    assert box(25, {}) == [True] * 20 + [False] * 5
    assert (
        box(10, {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}})
        == [True] * 8 + [False] * 2
    )
    union = {"u": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}
    assert sum(box(20, union)) == 16
    assert AnthropicBudget().take({"type": "object", "properties": {"a": {"allOf": [{}]}}}) is None


def test_openai_strict_requires_everything_and_lets_null_stand_for_nothing() -> None:
    """Optional parameters may be null; a null is then as if it had been left out; what can't be strict is not."""

    @tool
    def search(query: str, mode: Literal["a", "b"] = "a", limit: int | None = None) -> dict[str, Any]:
        return {"query": query, "mode": mode, "limit": limit}

    schema = openai_strict(search.input_schema)
    assert schema is not None
    assert schema["required"] == ["query", "mode", "limit"]
    assert schema["properties"]["mode"] == {
        "type": ["string", "null"],
        "enum": ["a", "b", None],
        "description": "(default: a)",
    }
    assert search.call({"query": "x", "mode": None, "limit": None}).structured == {
        "query": "x",
        "mode": "a",
        "limit": None,
    }
    for loose in (
        {"type": "object"},
        {"type": "array", "items": {}},
        {"oneOf": [{"type": "string"}]},
        {"enum": [str(n) for n in range(600)]},
    ):
        assert openai_strict({"type": "object", "properties": {"a": loose}, "required": ["a"]}) is None


def test_found_tools_stay_and_the_list_keeps_its_beginning() -> None:
    """A search loads deferred tools at the end of the list; the bytes before them do not change (prompt caches)."""
    tools = [
        Tool.create(
            name="read_mail",
            description="Reads electronic mail from a mailbox.",
            execute=lambda _: "mail",
            defer=True,
        ),
        Tool.create(
            name="plot_chart", description="Draws a chart of numbers.", execute=lambda _: "chart", defer=True
        ),
        Tool.create(name="add", description="Adds numbers.", execute=lambda _: "3"),
    ]
    box = Toolbox(tools)
    turn = box.turn()
    before = json.dumps(turn.definitions("openai"))[:-1]
    assert [one.full_name for one in turn.listed] == ["add", "tool_search"]
    assert [
        one["name"] for one in turn.call("tool_search", {"query": "draw a chart"}).structured["found"]
    ] == ["plot_chart"]
    assert [one.full_name for one in box.turn().listed] == ["add", "tool_search", "plot_chart"]
    assert turn.call("tool_search", {"query": "mailboxes"}).structured["found"][0]["name"] == "read_mail"
    after = json.dumps(box.turn().definitions("openai"))
    assert after.startswith(before)
    assert [one.full_name for one in box.turn().listed][-2:] == ["plot_chart", "read_mail"]
    assert turn.call("tool_search", {"query": "zebra"}).text == "no tool fits these words; try others"
    assert turn.call("read_mail").text == "mail"


def test_an_unknown_format_is_an_error() -> None:
    """The error lists what there is."""
    with pytest.raises(UsageError) as caught:
        format_of("bard")
    assert "anthropic" in str(caught.value.problem.help)
