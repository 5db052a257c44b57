"""Wire: messages as lines of a descriptor, read and written by threads of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from anyio.streams.memory import MemoryObjectSendStream

LONGEST: Final = 16 << 20
"""Bytes of one message; a longer one is dropped up to its end, so that a client can't fill our memory."""
_CHUNK: Final = 1 << 16
_WAITING: Final = 8  # lines read ahead


class Splitter:
    """Bytes as they come, split into lines of which at most `longest` bytes are kept at a time."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._kept = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Give the lines that end in a chunk, without their ends, None for one that is too long."""
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            long = self._skipping or len(self._kept) + len(piece) > self._longest
            yield None if long else bytes(self._kept) + piece
            self._kept.clear()
            self._skipping = False
        self._skipping = self._skipping or len(self._kept) + len(rest) > self._longest
        if self._skipping:
            self._kept.clear()
        else:
            self._kept += rest


class Lines:
    """The lines of a descriptor as they come, read by a thread of its own.

    A daemon thread, since a read that waits can't be called off: whoever is stopped by a signal must not wait
    for one more line of its client.
    """

    def __init__(self, descriptor: int, *, longest: int = LONGEST) -> None:
        self._descriptor = descriptor
        self._longest = longest

    async def __aiter__(self) -> AsyncIterator[bytes | None]:
        """Give each line without its end, None for one that is too long."""
        send, receive = anyio.create_memory_object_stream[bytes | None](_WAITING)
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop, send), name="skillrun-mcp-in", daemon=True).start()
        async with receive:
            async for line in receive:
                yield line

    def _read(self, loop: asyncio.AbstractEventLoop, send: MemoryObjectSendStream[bytes | None]) -> None:
        with contextlib.suppress(RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            try:
                for line in self._lines():
                    asyncio.run_coroutine_threadsafe(send.send(line), loop).result()
            finally:
                loop.call_soon_threadsafe(send.close)

    def _lines(self) -> Iterator[bytes | None]:
        splitter = Splitter(self._longest)
        while chunk := self._chunk():
            yield from splitter.feed(chunk)

    def _chunk(self) -> bytes:
        try:
            return os.read(self._descriptor, _CHUNK)
        except OSError:
            return b""


class Writer:
    """Writes whole messages to a descriptor, one after the other, by a thread of its own.

    `gone` is called in the loop when nobody reads any more; what is written after that is dropped.
    """

    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._gone = gone
        self._lost = False
        self._pending: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._work, name="skillrun-mcp-out", daemon=True).start()

    async def write(self, text: str) -> None:
        """Write a message and return when it was taken."""
        if self._lost:
            return
        written: asyncio.Future[None] = self._loop.create_future()
        self._pending.put((text.encode("utf-8", "replace"), written))
        await written

    async def flush(self) -> None:
        """Do nothing: nothing is kept back."""

    def _work(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed
            while True:
                data, written = self._pending.get()
                with contextlib.suppress(OSError):
                    self._all(data)
                    self._loop.call_soon_threadsafe(_settle, written)
                    continue
                self._loop.call_soon_threadsafe(self._end, written)
                return

    def _all(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]

    def _end(self, written: asyncio.Future[None]) -> None:
        self._lost = True
        _settle(written)
        while not self._pending.empty():
            _settle(self._pending.get()[1])
        self._gone()


def _settle(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)
