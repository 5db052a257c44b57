"""Far: the wire to a server that we start, which is trusted with nothing.

The SDK's own wire keeps a line that never ends, and hands the server's standard error to ours as it is. Here lines
are bounded, what floods us waits for its turn, and what a server says on standard error is told as its words.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from skillrun.mcp.wire import Splitter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from anyio.abc import ByteReceiveStream, Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    Streams = tuple[
        MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
    ]

log: Final = logging.getLogger("skillrun.mcp")
LONGEST: Final = 4 << 20
"""Bytes of one message; a longer one is dropped."""
MOST_A_SECOND: Final = 500
"""Messages that are read in a second; a server that sends more waits."""
_MOST_WORDS: Final = 20  # lines of its standard error that are told in a second
_LONGEST_WORDS: Final = 500
_PARTING: Final = 7.0  # seconds to end by itself, then after TERM: `mcp-run` gives its own server 5 of them


@contextlib.asynccontextmanager
async def far_server(name: str, words: Sequence[str], environ: Mapping[str, str]) -> AsyncIterator[Streams]:
    """Start a server and give what a client of the SDK speaks to it by; end it and all it started."""
    process = await anyio.open_process([*words], env={**environ}, start_new_session=True)
    told, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, asked = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_hear, process.stdout, told)
            group.start_soon(_say, process, asked)
            group.start_soon(_overhear, name, process.stderr)
            try:
                yield reading, writing
            finally:
                with anyio.CancelScope(shield=True):
                    reading.close()
                    writing.close()
                    await _end(process)
                group.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(_PARTING, shield=True):
            await process.aclose()


async def _hear(stream: Any, told: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    """Pass messages on; what is none is dropped without a word, since there may be no end of it."""
    async with told:
        async for line in _lines(stream, LONGEST, MOST_A_SECOND):
            with contextlib.suppress(ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                message = types.jsonrpc_message_adapter.validate_json(line or b"", by_name=False)
                await told.send(SessionMessage(message))


async def _say(process: Process, asked: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None  # noqa: S101 - it was started with pipes
    with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with asked:
            async for one in asked:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(f"{text}\n".encode())


async def _overhear(name: str, stream: Any) -> None:
    async for line in _lines(stream, LONGEST, _MOST_WORDS):
        text = (line or b"").decode("utf-8", "replace").strip()[:_LONGEST_WORDS]
        if text:
            log.warning("%s", f"the server `{name}` says: {text}")


async def _lines(stream: ByteReceiveStream, longest: int, a_second: int) -> AsyncIterator[bytes | None]:
    """Give lines as they come, no more of them in a second than that."""
    splitter = Splitter(longest)
    began, count = anyio.current_time(), 0
    with contextlib.suppress(
        OSError, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError
    ):
        while True:
            for line in splitter.feed(await stream.receive()):
                count += 1
                if count >= a_second:
                    await anyio.sleep(max(0.0, began + 1 - anyio.current_time()))
                    began, count = anyio.current_time(), 0
                yield line


async def _end(process: Process) -> None:
    """Close its input, then ask, then kill: `mcp-run` sees to it that nothing is left of what it started."""
    assert process.stdin is not None  # noqa: S101 - see `_say`
    with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    for then in (process.terminate, process.kill, None):
        with anyio.move_on_after(_PARTING):
            await process.wait()
            return
        if then is not None:
            with contextlib.suppress(ProcessLookupError):
                then()
