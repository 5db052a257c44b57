"""Fixtures of the conversation tests: a server that speaks the vendors' HTTP, and their real clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from model_server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Give a server whose answers a test writes."""
    made = ModelServer()
    running = made.start()
    yield made
    running.shutdown()
    running.server_close()


@pytest.fixture
def clients(server: ModelServer) -> Iterator[dict[str, Any]]:
    """Give the real clients, each bound to the server."""
    anthropic = pytest.importorskip("anthropic", reason="the Anthropic SDK is not installed")
    openai = pytest.importorskip("openai", reason="the OpenAI SDK is not installed")
    with (
        anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as first,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as second,
    ):
        yield {"anthropic": first, "openai": second, "openai-responses": second}
