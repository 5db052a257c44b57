"""Standard input and output as a transport: one client, for as long as it keeps our input open."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.shared.dispatcher import as_request_id
from mcp.shared.message import SessionMessage

from skillrun.mcp.inflight import InFlight
from skillrun.mcp.messages import Answer, answer, read
from skillrun.mcp.server import options_of
from skillrun.mcp.stopping import on_signal
from skillrun.mcp.wire import Lines, Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server import Server

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
            wire = Conversation(
                Lines(descriptors.reading), Writer(descriptors.writing, group.cancel_scope.cancel)
            )
            await wire.serve(service.server())
            group.cancel_scope.cancel()
    service.close()
    return stopped[0] if stopped else None


class Conversation:
    """Carries messages between the wire and the SDK, and answers by itself what is no message of the protocol."""

    def __init__(self, lines: Lines, writer: Writer) -> None:
        self._lines = lines
        self._writer = writer
        self._open = InFlight()

    async def serve(self, server: Server[Any]) -> None:
        """Serve until the client's input ends and all that was to be written is."""
        taken, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        writing, answers = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as group:
            group.start_soon(self._take, taken)
            group.start_soon(self._write_all, answers)
            await server.run(reading, writing, options_of(server))

    async def _take(self, taken: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        # The server may leave first; then what comes is read by nobody.
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with taken:
                async for line in self._lines:
                    found = self._judged(read(line), len(line or b""))
                    if isinstance(found, Answer):
                        await self._write(found.message)
                    elif found is not None:
                        await taken.send(SessionMessage(found))

    def _judged(
        self, found: types.JSONRPCMessage | Answer | None, size: int
    ) -> types.JSONRPCMessage | Answer | None:
        """Refuse a request whose id is under way, and one too many."""
        if isinstance(found, types.JSONRPCRequest):
            wrong = self._open.begin(found.id, size)
            return found if wrong is None else answer(wrong, found.id)
        if isinstance(found, types.JSONRPCNotification) and found.method == "notifications/cancelled":
            given = as_request_id((found.params or {}).get("requestId"))
            if given is not None:
                self._open.end(given)  # what was cancelled is never answered
        return found

    async def _write_all(self, answers: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with answers:
            async for one in answers:
                message = one.message
                if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None:
                    self._open.end(message.id)
                await self._write(message)

    async def _write(self, message: types.JSONRPCMessage) -> None:
        await self._writer.write(message.model_dump_json(by_alias=True, exclude_unset=True) + "\n")
