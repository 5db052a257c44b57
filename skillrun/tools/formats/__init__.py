"""Formats: tools, calls and results in the words of each provider, as plain data for its own SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.tools.formats.anthropic import Anthropic
from skillrun.tools.formats.gemini import Gemini
from skillrun.tools.formats.mcp import Mcp
from skillrun.tools.formats.openai_chat import OpenAIChat
from skillrun.tools.formats.openai_responses import OpenAIResponses

if TYPE_CHECKING:
    from skillrun.tools.formats.base import Format

FORMATS: Final[dict[str, Format]] = {
    "anthropic": Anthropic(),
    "openai": OpenAIChat(),
    "openai-responses": OpenAIResponses(),
    "gemini": Gemini(),
    "mcp": Mcp(),
}


def format_of(provider: str) -> Format:
    """Return a format by its name. Raises UsageError for one that is not known."""
    found = FORMATS.get(provider)
    if found is None:
        raise UsageError(
            error("tool-format", f"there is no format `{provider}`", help="there are " + ", ".join(FORMATS))
        )
    return found
