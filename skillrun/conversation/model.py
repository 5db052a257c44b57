"""Model: whoever answers: any callable that takes messages and an offer of tools, and returns a reply."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.conversation.messages import Message, Reply
    from skillrun.tools.box import Turn


class Use(enum.Enum):
    """Whether a model may call tools in its next reply."""

    AUTO = "auto"
    REQUIRED = "required"
    NONE = "none"


class Calls(enum.Enum):
    """How many calls a reply may have."""

    ONE = "one"
    MANY = "many"


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools a model may call now.

    `choice` is a Use, or the full name of the one tool that it has to call.
    """

    turn: Turn
    choice: Use | str = Use.AUTO
    calls: Calls = Calls.MANY

    def definitions(self, provider: str, **options: Any) -> list[dict[str, Any]]:
        """Return the definitions as a provider wants them: `anthropic`, `openai`, `openai-responses`, `gemini`, `mcp`."""
        return self.turn.definitions(provider, **options)


class Model(Protocol):
    """What drives a conversation. It is called with the whole of it each time and keeps nothing itself."""

    def __call__(self, messages: Sequence[Message], offer: Offer, /) -> Reply:
        """Return the next reply. What it raises comes out of the conversation, which stays as it was."""
        ...
