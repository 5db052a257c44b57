"""Messages: a conversation in nobody's format. Every model adapter writes it in its provider's words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from skillrun.tools.outcome import ToolCall, jsonable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillrun.tools.outcome import Outcome

ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""Ids of calls that every provider takes (facts/agents B4)."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said."""

    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered: text, calls, or both.

    `raw` is the provider's own message as JSON data, and `provider` who it is from: an adapter of that provider
    sends it back as it came (signed thoughts must not change), with the ids of `calls` in their places.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    raw: Any = None
    provider: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of the calls of the reply before it, in their order, one for each. It is derived, never stored."""

    outcomes: tuple[Outcome, ...]


Message: TypeAlias = Said | Reply | Answered


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids of calls that a conversation has used; providers repeat theirs, leave them empty, or make them too long."""

    used: set[str] = field(default_factory=set)

    def settled(self, reply: Reply, seq: int) -> Reply:
        """Return a reply whose calls have ids that are unique here and that every provider takes."""
        calls = tuple(self._settle(call, f"call_{seq}_{place}") for place, call in enumerate(reply.calls))
        return replace(reply, calls=calls)

    def take(self, messages: Iterable[Message]) -> None:
        """Remember the ids of what was said already."""
        for message in messages:
            if isinstance(message, Reply):
                self.used.update(call.id for call in message.calls)

    def _settle(self, call: ToolCall, own: str) -> ToolCall:
        named = call.id
        if not isinstance(named, str) or not ID.fullmatch(named) or named in self.used:
            named = own
            while named in self.used:
                named += "_"
        self.used.add(named)
        return replace(call, name=str(call.name), id=named)


def to_data(message: Said | Reply) -> dict[str, Any]:
    """Return a message as JSON data. Raises TypeError for a reply whose arguments or raw message are no JSON."""
    if isinstance(message, Said):
        return {"said": jsonable(message.text)}
    return {
        "text": jsonable(message.text),
        "calls": [call_data(one) for one in message.calls],
        "raw": jsonable(message.raw),
        "provider": message.provider,
    }


def from_data(data: Mapping[str, Any]) -> Said | Reply:
    """Return the message that `to_data` wrote."""
    if "said" in data:
        return Said(data["said"])
    calls = tuple(call_of(one) for one in data["calls"])
    return Reply(data["text"], calls, data["raw"], data["provider"])


def call_data(call: ToolCall) -> dict[str, Any]:
    """Return a call as JSON data. Raises TypeError for arguments that are none."""
    return {
        "name": jsonable(call.name),
        "arguments": jsonable(call.arguments),
        "id": call.id,
        "namespace": call.namespace,
    }


def call_of(data: Mapping[str, Any]) -> ToolCall:
    """Return the call that `call_data` wrote."""
    return ToolCall(data["name"], data["arguments"], data["id"], data["namespace"])
