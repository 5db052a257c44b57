"""Anthropic: the Messages API behind `anthropic.Anthropic`, or `client.beta`, or a client of a cloud."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from skillrun.conversation.messages import Reply, Said
from skillrun.conversation.model import Calls, Use
from skillrun.conversation.models.base import (
    Adapter,
    ModelError,
    as_object,
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

    from skillrun.conversation.messages import Answered, Message
    from skillrun.conversation.model import Offer
    from skillrun.tools.outcome import ToolCall

_MAX_TOKENS: Final = 8192
_PAUSES: Final = 10
"""Times that a reply may pause for the provider's own tools before it is taken as it is."""
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})


class AnthropicModel(Adapter):
    """A model of Anthropic; everything is as in `Adapter`. `max_tokens` bounds one reply, 8,192 when it is left out."""

    provider: ClassVar[str] = "anthropic"

    def written(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Return the entries of `messages`: outcomes and what a person said next are one message, outcomes first."""
        made: list[dict[str, Any]] = []
        for message in paired(messages):
            if isinstance(message, Said):
                _add(made, "user", [{"type": "text", "text": worded(message.text)}])
            elif isinstance(message, Reply):
                _add(made, "assistant", _blocks(message))
            else:
                _add(made, "user", _results(message))
        return made

    def _body(self, written: list[dict[str, Any]]) -> dict[str, Any]:
        system = {"system": self.system} if self.system else {}
        return {"max_tokens": _MAX_TOKENS, **system, "messages": written}

    def _choice(self, offer: Offer, definitions: list[dict[str, Any]]) -> dict[str, Any]:
        if offer.choice is Use.NONE:
            return {"tool_choice": {"type": "none"}}
        made: dict[str, Any] = {"type": "any" if offer.choice is Use.REQUIRED else "auto"}
        if isinstance(offer.choice, str):
            names = [one["name"] for one in definitions if "input_schema" in one]
            made = {"type": "tool", "name": forced(offer.choice, names)}
        if offer.calls is Calls.ONE:
            made["disable_parallel_tool_use"] = True
        return {} if made == {"type": "auto"} else {"tool_choice": made}

    def _ask(self, request: dict[str, Any]) -> Reply:
        before, content = request["messages"], list[dict[str, Any]]()
        message: dict[str, Any] = {}
        for _ in range(_PAUSES):
            message = plain(self._send(request))
            if not message.get("stop_reason"):
                raise ModelError.of("Anthropic", "the stream ended before the reply did")
            content += message.get("content") or []
            if message["stop_reason"] != "pause_turn" or not content:
                break
            # The provider's own search is not done: it goes on when its words come back unchanged.
            request = {**request, "messages": [*before, {"role": "assistant", "content": [*content]}]}
        return _read(stable(content), message.get("stop_reason"))

    def _send(self, request: dict[str, Any]) -> Any:
        if self.stream is None:
            return self.client.messages.create(**request)
        with self.client.messages.stream(**request) as pieces:
            for text in pieces.text_stream:
                self.stream(text)
            return pieces.get_final_message()


def _add(made: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    """Append blocks; to the message before where the same one speaks again, and nothing where there is none."""
    if blocks and made and made[-1]["role"] == role:
        made[-1] = {"role": role, "content": [*made[-1]["content"], *blocks]}
    elif blocks:
        made.append({"role": role, "content": blocks})


def _read(content: list[dict[str, Any]], why: str | None) -> Reply:
    calls = format_of("anthropic").calls({"content": content})
    if why == "max_tokens" and content and content[-1]["type"] == "tool_use":
        # Half a path is a path. As text that is no JSON it can't pass the check of the arguments.
        calls[-1] = replace(calls[-1], arguments="cut off at max_tokens")
    text = "".join(one["text"] for one in content if one["type"] == "text")
    return Reply(text, tuple(calls), content, "anthropic")


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    """Return the blocks of a reply: those that came, the ids of the calls in place; or new ones for another's reply."""
    raw = reply.raw if reply.provider == "anthropic" and isinstance(reply.raw, list) else []
    used = [one for one in raw if one["type"] == "tool_use"]
    if not raw or len(used) != len(reply.calls):
        text = [{"type": "text", "text": worded(reply.text)}] if reply.text.strip() else []
        return text + [_use(call) for call in reply.calls]
    rest = iter(reply.calls)
    blocks = [_renamed(one, next(rest)) if one["type"] == "tool_use" else one for one in raw]
    blocks = [one for one in blocks if one["type"] != "text" or one["text"].strip()]
    # A reply that ended within a thought: the API takes none that has a thought at its end.
    while blocks and blocks[-1]["type"] in _THOUGHTS:
        blocks.pop()
    return blocks


def _renamed(block: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    return {**block, "id": call.id, "name": fitted_name(call.name)}


def _use(call: ToolCall) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": joined_name(call),
        "input": as_object(call.arguments),
    }


def _results(answered: Answered) -> list[dict[str, Any]]:
    """Return the results, then the pictures of those that are errors: an error may hold text only."""
    blocks: list[dict[str, Any]] = format_of("anthropic").results(answered.outcomes)[0]["content"]
    pictures: list[dict[str, Any]] = []
    for one in blocks:
        if one["is_error"]:
            pictures += [part for part in one["content"] if part["type"] != "text"]
            one["content"] = [part for part in one["content"] if part["type"] == "text"]
    return blocks + pictures
