"""Standard input and output as a transport: one client, for as long as it keeps our input open."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import anyio
from mcp.server.stdio import stdio_server

from skillrun.mcp.server import options_of
from skillrun.mcp.stopping import on_signal
from skillrun.mcp.wire import Lines, Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillrun.mcp.descriptors import Descriptors
    from skillrun.mcp.server import Service


def serve_stdio(make: Callable[[], Service], descriptors: Descriptors) -> int | None:
    """Serve until the client closes our input. Returns the number of the signal that stopped it, else None."""
    return anyio.run(_serve, make, descriptors)


async def _serve(make: Callable[[], Service], descriptors: Descriptors) -> int | None:
    stopped: list[int] = []
    loop = asyncio.get_running_loop()
    service = make()
    async with anyio.create_task_group() as group:

        def stop(number: int) -> None:
            stopped.append(number)
            loop.call_soon_threadsafe(group.cancel_scope.cancel)

        with on_signal(stop):
            group.start_soon(service.watch)
            lines = Lines(descriptors.reading)
            writer = Writer(descriptors.writing, group.cancel_scope.cancel)
            # The SDK asks for a stream it can read lines from, and one it can write to: that is all it does.
            async with stdio_server(cast("Any", lines), cast("Any", writer)) as (reading, writing):
                server = service.server()
                await server.run(reading, writing, options_of(server))
            group.cancel_scope.cancel()
    service.calls.close()
    return stopped[0] if stopped else None
