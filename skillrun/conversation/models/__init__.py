"""Models: clients of the vendors' SDKs as what drives a conversation. No SDK is imported: the caller makes the client."""

from __future__ import annotations

from skillrun.conversation.models.anthropic import AnthropicModel
from skillrun.conversation.models.base import ModelError
from skillrun.conversation.models.openai_chat import OpenAIChatModel
from skillrun.conversation.models.openai_responses import OpenAIResponsesModel

__all__ = ["AnthropicModel", "ModelError", "OpenAIChatModel", "OpenAIResponsesModel"]
