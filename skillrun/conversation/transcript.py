"""Transcript: what is wrong with the messages that a provider is about to get, by its own rules.

A provider refuses the whole request for one of these, and refuses it again each time: the conversation is lost.
The rules are those of facts/agents B4 and of the threads it names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.formats.base import IMAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_LONG_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_IDS: Final = {
    "anthropic": re.compile(r"[a-zA-Z0-9_-]+"),
    "openai": re.compile(r".{1,40}", re.DOTALL),  # older routes take 40 characters, newer ones 64
    "openai-responses": re.compile(r".{1,64}", re.DOTALL),
    "gemini": re.compile(r".*", re.DOTALL),
}
_DATA_URL: Final = re.compile(r"data:(image/[a-z]+);base64,[A-Za-z0-9+/]+={0,2}|https?://.+", re.DOTALL)
_THOUGHTS: Final = {"thinking": "signature", "redacted_thinking": "data"}
# What may not stand in a message of each role. Names that are not here are the provider's own, and its to know.
_MISPLACED: Final = {
    "user": frozenset({"thinking", "redacted_thinking", "tool_use", "server_tool_use"}),
    "assistant": frozenset({"tool_result", "image", "document"}),
}
_IN_RESULT: Final = frozenset({"text", "image", "document", "search_result", "tool_reference"})
_CHAT_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})
_CHAT_PARTS: Final = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
    "tool": frozenset({"text"}),
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
}
_IN_OUTPUT: Final = frozenset({"input_text", "input_image", "input_file"})
_SAID_BY_USER: Final = frozenset({"user", "system", "developer"})


def faults(provider: str, messages: Sequence[dict[str, Any]]) -> list[str]:
    """Return what is wrong with messages, each fault with its place; nothing for what the provider takes.

    `messages` are Anthropic's `messages`, Chat Completions' `messages`, Responses' `input` or Gemini's `contents`,
    as `provider` (`anthropic`, `openai`, `openai-responses`, `gemini`) says. Raises KeyError for another one.
    """
    if not messages:
        return ["messages: there are none"]
    return list(_RULES[provider](list(messages)))


def _ids(provider: str, place: str, ids: Iterable[Any], seen: set[str]) -> Iterator[str]:
    """Yield ids that are none, or that were used before."""
    for one in ids:
        if not isinstance(one, str) or not _IDS[provider].fullmatch(one):
            yield f"{place}: the id {one!r} is none that the API takes"
        elif one in seen:
            yield f"{place}: the id {one!r} is not unique"
        seen.add(str(one))


def _answers(place: str, calls: Sequence[Any], answers: Sequence[Any]) -> Iterator[str]:
    """Yield calls that are not answered exactly once, and answers to nothing."""
    for one in dict.fromkeys(calls):
        if one not in answers:
            yield f"{place}: the call {one!r} has no result right after it"
        elif answers.count(one) > 1:
            yield f"{place}: the call {one!r} has more than one result"
    for one in dict.fromkeys(answers):
        if one not in calls:
            yield f"{place}: the result {one!r} belongs to no call right before it"


def _named(place: str, name: Any, rule: re.Pattern[str]) -> Iterator[str]:
    if not isinstance(name, str) or not rule.fullmatch(name):
        yield f"{place}: the name {name!r} is none that the API takes"


def _blank(text: Any) -> bool:
    return not isinstance(text, str) or not text.strip()


# Anthropic


def _anthropic(messages: list[dict[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    if messages[0].get("role") != "user":
        yield "messages.0: the first message is the user's"
    calls: list[Any] = []
    for number, message in enumerate(messages):
        place = f"messages.{number}"
        if message.get("role") not in _MISPLACED:
            yield f"{place}: there is no role {message.get('role')!r}"
            continue
        given = message.get("content")
        blocks = [{"type": "text", "text": given}] if isinstance(given, str) else list(given or ())
        if not blocks:
            yield f"{place}: a message has content"
        for spot, block in enumerate(blocks):
            yield from _anthropic_block(f"{place}.content.{spot}", message["role"], block)
        kinds = [one.get("type") for one in blocks]
        yield from _anthropic_order(place, kinds)
        answers = [one.get("tool_use_id") for one in blocks if one.get("type") == "tool_result"]
        yield from _answers(place, calls, answers)
        calls = [one.get("id") for one in blocks if one.get("type") == "tool_use"]
        yield from _ids("anthropic", place, calls, seen)
    yield from _answers("the end", calls, [])


def _anthropic_order(place: str, kinds: list[Any]) -> Iterator[str]:
    if "tool_result" in kinds and set(kinds[: kinds.count("tool_result")]) != {"tool_result"}:
        yield f"{place}: results come before everything else"
    if "tool_use" in kinds and any(one in _THOUGHTS for one in kinds[kinds.index("tool_use") :]):
        yield f"{place}: thoughts come before the calls"
    if kinds and kinds[-1] in _THOUGHTS:
        yield f"{place}: the last block can't be a thought"


def _anthropic_block(place: str, role: str, block: dict[str, Any]) -> Iterator[str]:
    kind = block.get("type")
    if kind in _MISPLACED[role]:
        yield f"{place}: `{kind}` has no place in a message of the {role}"
    if kind == "text" and _blank(block.get("text")):
        yield f"{place}: a text is not empty"
    elif kind == "image":
        yield from _anthropic_image(place, block)
    elif kind in _THOUGHTS and not block.get(_THOUGHTS[kind]):
        yield f"{place}: a thought has its `{_THOUGHTS[kind]}`"
    elif kind == "tool_use":
        yield from _named(place, block.get("name"), _LONG_NAME)
        if not isinstance(block.get("input"), dict):
            yield f"{place}: the input of a call is an object"
    elif kind == "tool_result":
        yield from _anthropic_result(place, block)


def _anthropic_result(place: str, block: dict[str, Any]) -> Iterator[str]:
    given = block.get("content")
    parts = [{"type": "text", "text": given}] if isinstance(given, str) else list(given or ())
    if not parts:
        yield f"{place}: a result is not empty"
    for spot, part in enumerate(parts):
        inner, kind = f"{place}.content.{spot}", part.get("type")
        if kind not in _IN_RESULT:
            yield f"{inner}: `{kind}` has no place in a result"
        elif block.get("is_error") and kind != "text":
            yield f"{inner}: an error holds text only"
        yield from _anthropic_block(inner, "user", part)


def _anthropic_image(place: str, block: dict[str, Any]) -> Iterator[str]:
    source = block.get("source") or {}
    if source.get("type") == "base64" and (source.get("media_type") not in IMAGES or not source.get("data")):
        yield f"{place}: an image is PNG, JPEG, GIF or WebP, and not empty"


# OpenAI Chat Completions


def _chat(messages: list[dict[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    calls: list[Any] = []
    answers: list[Any] = []
    pictures = False
    for number, message in enumerate(messages):
        place, role = f"messages.{number}", message.get("role")
        yield from _chat_content(place, message)
        if role == "tool":
            answers.append(message.get("tool_call_id"))
            continue
        yield from _answers(place, calls, answers)
        used = message.get("tool_calls")
        if used is not None and (role != "assistant" or not used):
            yield f"{place}: `tool_calls` is a list with calls, in a message of the assistant"
        calls, answers = [one.get("id") for one in used or ()], []
        yield from _ids("openai", place, calls, seen)
        for one in used or ():
            yield from _chat_call(place, one)
        had, pictures = pictures, role == "user" and "image_url" in _kinds(message)
        if had and pictures:
            yield f"{place}: the pictures of a round are in one message"
    yield from _answers("the end", calls, answers)


def _chat_call(place: str, call: dict[str, Any]) -> Iterator[str]:
    function = call.get("function") or {}
    yield from _named(place, function.get("name"), _NAME)
    if call.get("type") != "function" or not isinstance(function.get("arguments"), str):
        yield f"{place}: a call is a function, its arguments a text"


def _kinds(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return [one.get("type") for one in content] if isinstance(content, list) else []


def _chat_content(place: str, message: dict[str, Any]) -> Iterator[str]:
    role, content = message.get("role"), message.get("content")
    if role not in _CHAT_ROLES:
        yield f"{place}: there is no role {role!r}"
        return
    if content is None:
        if role != "assistant" or not (message.get("tool_calls") or message.get("refusal")):
            yield f"{place}: a message has content"
    elif isinstance(content, list):
        if not content:
            yield f"{place}: a message has content"
        for spot, part in enumerate(content):
            yield from _chat_part(f"{place}.content.{spot}", role, part)
    elif not isinstance(content, str):
        yield f"{place}: the content is a text or a list"
    elif role == "tool" and not content:
        yield f"{place}: a result is not empty"


def _chat_part(place: str, role: str, part: dict[str, Any]) -> Iterator[str]:
    kind = part.get("type")
    if kind not in _CHAT_PARTS[role]:
        yield f"{place}: `{kind}` has no place in a message of the {role}"
    elif kind == "image_url":
        yield from _picture(place, (part.get("image_url") or {}).get("url"))


def _picture(place: str, url: Any) -> Iterator[str]:
    found = _DATA_URL.fullmatch(url) if isinstance(url, str) else None
    if found is None or (found[1] is not None and found[1] not in IMAGES):
        yield f"{place}: an image is PNG, JPEG, GIF or WebP, and not empty"


# OpenAI Responses


def _responses(items: list[dict[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    own: set[str] = set()
    calls: list[Any] = []
    answers: list[Any] = []
    for number, item in enumerate(items):
        place, kind = f"input.{number}", _kind(item)
        if kind == "function_call_output":
            answers.append(item.get("call_id"))
            yield from _output(place, item)
            continue
        if answers or kind == "user":
            yield from _answers(place, calls, answers)
            calls, answers = [], []
        if kind == "function_call":
            calls.append(item.get("call_id"))
            yield from _ids("openai-responses", place, calls[-1:], seen)
            yield from _named(place, item.get("name"), _LONG_NAME)
            if not isinstance(item.get("arguments"), str):
                yield f"{place}: the arguments of a call are a text"
        elif kind == "reasoning":
            after = _kind(items[number + 1]) if number + 1 < len(items) else None
            if after in {None, "user", "function_call_output"}:
                yield f"{place}: a thought is followed by what it led to"
        elif kind == "user" or item.get("role") == "assistant":
            yield from _said(place, item)
        if item.get("id") in own:
            yield f"{place}: the item {item['id']!r} is not unique"
        own |= {item["id"]} if item.get("id") else set()
    yield from _answers("the end", calls, answers)


def _kind(item: dict[str, Any]) -> Any:
    kind = item.get("type") or ("message" if item.get("role") == "assistant" else None)
    return "user" if item.get("role") in _SAID_BY_USER else kind


def _said(place: str, item: dict[str, Any]) -> Iterator[str]:
    given = item.get("content")
    kinds = [one.get("type") for one in given] if isinstance(given, list) else []
    if not isinstance(given, str) and not kinds:
        yield f"{place}: a message has content"
    own = "output_" if item.get("role") == "assistant" else "input_"
    for kind in kinds:
        if not str(kind).startswith(own) and (own == "input_" or kind != "refusal"):
            yield f"{place}: `{kind}` has no place in a message of the {item.get('role')}"


def _output(place: str, item: dict[str, Any]) -> Iterator[str]:
    given = item.get("output")
    if not isinstance(given, str) and not (isinstance(given, list) and given):
        yield f"{place}: an output is a text, or a list of parts"
    for spot, part in enumerate(given if isinstance(given, list) else ()):
        if part.get("type") not in _IN_OUTPUT:
            yield f"{place}.output.{spot}: `{part.get('type')}` has no place in an output"
        elif part["type"] == "input_image" and "file_id" not in part:
            yield from _picture(f"{place}.output.{spot}", part.get("image_url"))


# Gemini


def _gemini(contents: list[dict[str, Any]]) -> Iterator[str]:
    calls: list[dict[str, Any]] = []
    for number, content in enumerate(contents):
        place, role = f"contents.{number}", content.get("role")
        parts = content.get("parts") or []
        if role not in {"user", "model"}:
            yield f"{place}: there is no role {role!r}"
        if not parts:
            yield f"{place}: a content has parts"
        for spot, part in enumerate(parts):
            yield from _gemini_part(f"{place}.parts.{spot}", role, part)
        answers = [one["functionResponse"] for one in parts if "functionResponse" in one]
        yield from _gemini_answers(place, calls, answers)
        calls = [one["functionCall"] for one in parts if "functionCall" in one]
        yield from _ids("gemini", place, [one["id"] for one in calls if one.get("id")], set())
    yield from _gemini_answers("the end", calls, [])


def _gemini_answers(place: str, calls: list[dict[str, Any]], answers: list[dict[str, Any]]) -> Iterator[str]:
    if len(calls) != len(answers):
        yield f"{place}: there are {len(answers)} function responses for {len(calls)} function calls"
    elif [one.get("name") for one in calls] != [one.get("name") for one in answers]:
        yield f"{place}: the responses have not the names of the calls"
    elif any(
        call.get("id") and call["id"] != one.get("id") for call, one in zip(calls, answers, strict=True)
    ):
        yield f"{place}: the responses have not the ids of the calls"


def _gemini_part(place: str, role: Any, part: dict[str, Any]) -> Iterator[str]:
    if "text" in part and not part.get("text"):
        yield f"{place}: a text is not empty"
    if "functionCall" in part and role != "model":
        yield f"{place}: only the model calls"
    if "functionResponse" in part:
        if role == "model":
            yield f"{place}: the model answers no calls"
        if not isinstance(part["functionResponse"].get("response"), dict):
            yield f"{place}: a response is an object"
    data = part.get("inlineData")
    if data is not None and (data.get("mimeType") not in IMAGES or not data.get("data")):
        yield f"{place}: an image is PNG, JPEG, GIF or WebP, and not empty"


_RULES: Final[dict[str, Callable[[list[dict[str, Any]]], Iterator[str]]]] = {
    "anthropic": _anthropic,
    "openai": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
