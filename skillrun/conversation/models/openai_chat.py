"""OpenAI Chat Completions behind `openai.OpenAI`, and behind the many servers that speak it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from skillrun.conversation.messages import Reply, Said
from skillrun.conversation.model import Calls, Use
from skillrun.conversation.models.base import (
    Adapter,
    ModelError,
    as_text,
    fitted_name,
    forced,
    joined_name,
    paired,
    stable,
    worded,
)
from skillrun.tools.formats import format_of
from skillrun.tools.formats.base import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.conversation.messages import Message
    from skillrun.conversation.model import Offer
    from skillrun.tools.outcome import ToolCall

_WHOLE: Final = frozenset({"id", "index", "name", "role", "type"})
"""Parts of a stream that come whole, and that some servers repeat in every piece."""
_CHOICES: Final = {Use.REQUIRED: "required", Use.NONE: "none"}


class OpenAIChatModel(Adapter):
    """A model that speaks Chat Completions; everything is as in `Adapter`."""

    provider: ClassVar[str] = "openai"

    def written(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Return the entries of `messages`, the system prompt first."""
        made: list[dict[str, Any]] = [{"role": "system", "content": self.system}] if self.system else []
        for message in paired(messages):
            if isinstance(message, Said):
                made.append({"role": "user", "content": worded(message.text)})
            elif isinstance(message, Reply):
                made.append(_message(message))
            else:
                made += format_of("openai").results(message.outcomes)
        return made

    def _body(self, written: list[dict[str, Any]]) -> dict[str, Any]:
        return {"messages": written}

    def _choice(self, offer: Offer, definitions: list[dict[str, Any]]) -> dict[str, Any]:
        # Left out where it is what the API does anyway: some models take neither parameter.
        made: dict[str, Any] = {"parallel_tool_calls": False} if offer.calls is Calls.ONE else {}
        if isinstance(offer.choice, str):
            name = forced(offer.choice, [one["function"]["name"] for one in definitions])
            made["tool_choice"] = {"type": "function", "function": {"name": name}}
        elif offer.choice in _CHOICES:
            made["tool_choice"] = _CHOICES[offer.choice]
        return made

    def _ask(self, request: dict[str, Any]) -> Reply:
        if self.stream is None:
            choices = plain(self.client.chat.completions.create(**request)).get("choices") or [{}]
            message = choices[0].get("message")
        else:
            message = self._streamed(request)
        if not message:
            raise ModelError.of("OpenAI", "the answer holds no message")
        # What the web search cites is no part of a message that is sent.
        message = stable({key: value for key, value in message.items() if key != "annotations"})
        calls = format_of("openai").calls({"choices": [{"message": message}]})
        text = message.get("content") or message.get("refusal") or ""
        return Reply(text, tuple(calls), message, "openai")

    def _streamed(self, request: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {}
        ended = False
        with self.client.chat.completions.create(**request, stream=True) as pieces:
            for piece in pieces:
                for choice in (plain(piece).get("choices") or [])[:1]:
                    delta = choice.get("delta") or {}
                    told = delta.get("content") or delta.get("refusal")
                    if self.stream is not None and told:
                        self.stream(told)
                    _grow(message, delta)
                    ended = ended or bool(choice.get("finish_reason"))
        if not ended:
            raise ModelError.of("OpenAI", "the stream ended before the reply did")
        for call in message.get("tool_calls", []):
            call.pop("index", None)
        return message


def _grow(whole: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a piece of a stream to what came before: texts are joined, lists go by their index."""
    for key, value in delta.items():
        before = whole.get(key)
        if isinstance(value, list):
            _grow_list(whole.setdefault(key, []), value)
        elif isinstance(value, dict):
            _grow(whole.setdefault(key, {}), value)
        elif isinstance(value, str) and isinstance(before, str):
            whole[key] = (before or value) if key in _WHOLE else before + value
        else:
            whole[key] = value


def _grow_list(whole: list[Any], pieces: list[Any]) -> None:
    for piece in pieces:
        index = piece.get("index") if isinstance(piece, dict) else None
        known = [one for one in whole if index is not None and one.get("index") == index]
        if known:
            _grow(known[0], piece)
        else:
            whole.append(piece)


def _message(reply: Reply) -> dict[str, Any]:
    raw = reply.raw if reply.provider == "openai" and isinstance(reply.raw, dict) else None
    made: dict[str, Any] = {
        "role": "assistant",
        "content": worded(reply.text) if reply.text.strip() else None,
    }
    if raw is not None and len(raw.get("tool_calls") or []) == len(reply.calls):
        made = {"role": "assistant", "content": None, **raw}
        pairs = zip(raw.get("tool_calls") or [], reply.calls, strict=True)
        calls = [_renamed(one, call) for one, call in pairs]
    else:
        calls = [_call(call) for call in reply.calls]
    made.pop("tool_calls", None)  # an empty list is refused
    if calls:
        made["tool_calls"] = calls
    elif made["content"] is None and not made.get("refusal"):
        made["content"] = ""
    return made


def _renamed(raw: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    function = raw.get("function") or {}
    function = {**function, "name": fitted_name(call.name), "arguments": function.get("arguments") or ""}
    return {**raw, "type": "function", "id": call.id, "function": function}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": joined_name(call), "arguments": as_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}
