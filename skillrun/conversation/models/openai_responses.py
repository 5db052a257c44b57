"""OpenAI Responses behind `openai.OpenAI`. The whole conversation is sent each time: nothing hangs on what the server keeps."""

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
    paired,
    stable,
    unforceable,
    worded,
)
from skillrun.tools.formats import format_of
from skillrun.tools.formats.base import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillrun.conversation.messages import Message
    from skillrun.conversation.model import Offer
    from skillrun.tools.outcome import ToolCall

_CHOICES: Final = {Use.REQUIRED: "required", Use.NONE: "none"}
_LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})


class OpenAIResponsesModel(Adapter):
    """A model that speaks Responses; everything is as in `Adapter`.

    With `store=False` a reasoning model needs `include=["reasoning.encrypted_content"]` too, else its thoughts
    can't be sent back.
    """

    provider: ClassVar[str] = "openai-responses"

    def written(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Return the items of `input`."""
        made: list[dict[str, Any]] = []
        for message in paired(messages):
            if isinstance(message, Said):
                made.append({"role": "user", "content": worded(message.text)})
            elif isinstance(message, Reply):
                made += _items(message)
            else:
                made += format_of("openai-responses").results(message.outcomes)
        return made

    def _body(self, written: list[dict[str, Any]]) -> dict[str, Any]:
        return {"input": written, **({"instructions": self.system} if self.system else {})}

    def _choice(self, offer: Offer, definitions: list[dict[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {"parallel_tool_calls": False} if offer.calls is Calls.ONE else {}
        if isinstance(offer.choice, str):
            if any(one.namespace and one.full_name == offer.choice for one in offer.turn.tools):
                raise unforceable(offer.choice)
            names = [one["name"] for one in definitions if one["type"] == "function"]
            made["tool_choice"] = {"type": "function", "name": forced(offer.choice, names)}
        elif offer.choice in _CHOICES:
            made["tool_choice"] = _CHOICES[offer.choice]
        return made

    def _ask(self, request: dict[str, Any]) -> Reply:
        if self.stream is None:
            response = plain(self.client.responses.create(**request))
        else:
            response = self._streamed(request)
        if response.get("status") in {"failed", "cancelled"}:
            told = (response.get("error") or {}).get("message") or f"the reply {response['status']}"
            raise ModelError.of("OpenAI", told)
        output = stable(response.get("output") or [])
        calls = format_of("openai-responses").calls({"output": output})
        return Reply("".join(_texts(output)), tuple(calls), output, "openai-responses")

    def _streamed(self, request: dict[str, Any]) -> dict[str, Any]:
        response: dict[str, Any] = {}
        done: dict[int, dict[str, Any]] = {}
        with self.client.responses.create(**request, stream=True) as pieces:
            for piece in pieces:
                if piece.type in {"response.output_text.delta", "response.refusal.delta"}:
                    if self.stream is not None:
                        self.stream(piece.delta)
                elif piece.type == "response.output_item.done":
                    done[piece.output_index] = plain(piece.item)
                elif piece.type == "error":
                    raise ModelError.of("OpenAI", piece.message)
                elif piece.type in _LAST:
                    response = plain(piece.response)
        if not response:
            raise ModelError.of("OpenAI", "the stream ended before the reply did")
        # An item is whole in its own event; some routes leave the items out of the last one.
        output = [done[place] for place in sorted(done)] or response.get("output")
        return {**response, "output": output}


def _texts(output: list[dict[str, Any]]) -> Iterator[str]:
    for item in output:
        if item.get("type") == "message":
            for part in item.get("content") or []:
                yield part.get("text") or part.get("refusal") or ""


def _items(reply: Reply) -> list[dict[str, Any]]:
    raw = reply.raw if reply.provider == "openai-responses" and isinstance(reply.raw, list) else []
    used = [one for one in raw if one.get("type") == "function_call"]
    if not raw or len(used) != len(reply.calls):
        text = [{"role": "assistant", "content": worded(reply.text)}] if reply.text.strip() else []
        return text + [_call(call) for call in reply.calls]
    rest = iter(reply.calls)
    items = [_renamed(one, next(rest)) if one.get("type") == "function_call" else one for one in raw]
    # A reply that was cut within a thought: the API takes no thought without what it led to.
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    return items


def _renamed(item: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    return {**item, "call_id": call.id, "name": fitted_name(call.name)}


def _call(call: ToolCall) -> dict[str, Any]:
    made = {
        "type": "function_call",
        "call_id": call.id,
        "name": fitted_name(call.name),
        "arguments": as_text(call.arguments),
    }
    return made if call.namespace is None else {**made, "namespace": call.namespace}
