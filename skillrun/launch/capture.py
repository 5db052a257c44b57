"""Capture: everything a script prints is drained and counted, and a bounded part of it is kept."""

from __future__ import annotations

import mmap
import os
import stat
from collections import deque
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Captured:
    """One stream after a run: the text kept, how many bytes came, and whether some were dropped."""

    text: str
    bytes: int
    truncated: bool


class Sink(Protocol):
    """Where the bytes of one stream go."""

    def ready(self) -> int | None:
        """Return a descriptor that must be writable before more is read, None when there is none."""

    def room(self) -> int:
        """Return how many bytes may be given at once."""

    def feed(self, chunk: bytes) -> None:
        """Take bytes. Raises OSError when they can't be taken any more."""

    def captured(self) -> Captured:
        """Describe what came."""


_LONGEST = 4  # bytes of a UTF-8 character; RFC 3629, 3
_CONTINUATION = 0b10000000
_LEADS = {2: (0b11100000, 0b11000000), 3: (0b11110000, 0b11100000), 4: (0b11111000, 0b11110000)}
_BLOCK = 1 << 20  # bytes of memory that are reserved at once
_CHUNK = 1 << 16  # bytes: what a pipe holds by default


class Keep:
    """Keeps the first and the last half of `limit` bytes; memory stays bounded whatever comes."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._head_size = 0
        self._head: list[mmap.mmap] = []
        self._add_block()  # ahead of the run: what is missing now is said before anything was started
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._seen = 0

    def ready(self) -> int | None:
        """Return None: memory is always ready."""
        return None

    def room(self) -> int:
        """Return the size of a pipe."""
        return _CHUNK

    def feed(self, chunk: bytes) -> None:
        """Keep what fits into the first half, then the latest of the rest."""
        self._seen += len(chunk)
        space = self._head_limit - self._head_size
        if space > 0:
            self._begin(chunk[:space])
            chunk = chunk[space:]
        if not chunk:
            return
        if len(chunk) >= self._tail_limit:
            self._tail.clear()
            chunk = chunk[len(chunk) - self._tail_limit :]
            self._tail_size = 0
        self._tail.append(chunk)
        self._tail_size += len(chunk)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
            self._tail_size -= len(self._tail.popleft())

    def _begin(self, chunk: bytes) -> None:
        """Keep bytes of the first half."""
        while chunk:
            block = self._head[-1]
            written = block.write(chunk[: len(block) - block.tell()])
            self._head_size += written
            chunk = chunk[written:]
            if chunk or block.tell() == len(block):
                self._add_block()

    def _add_block(self) -> None:
        """Make room for more of the first half, where there is to be more. Raises OSError, which `feed` may not.

        Not from the heap: of many runs in many threads it keeps the holes that outputs leave. What is not written to takes
        no memory. Private: else a forked copy of this process would write into the same.
        """
        size = min(_BLOCK, self._head_limit - self._head_size)
        if size:
            self._head.append(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE))

    def _beginning(self) -> memoryview | bytes:
        """Return what is kept of the first half, by view where it is in one piece."""
        views = [memoryview(block)[: block.tell()] for block in self._head]
        return views[0] if len(views) == 1 else b"".join(views)

    def captured(self) -> Captured:
        """Join both halves as text, with one line between them that says how much is missing.

        Cuts are made between characters. What is not UTF-8 becomes replacement marks, so a result can
        always be written as JSON.
        """
        tail = b"".join(self._tail)[-self._tail_limit :] if self._tail_limit else b""
        kept = self._beginning()
        dropped = self._seen - len(kept) - len(tail)
        if not dropped:
            whole = b"".join((kept, tail)) if tail else kept
            return Captured(str(whole, "utf-8", "replace"), self._seen, truncated=False)
        head = _without_partial_end(bytes(kept))
        tail = _without_partial_start(tail)
        dropped = self._seen - len(head) - len(tail)
        middle = f"\n[… {dropped} bytes left out …]\n"
        text = head.decode("utf-8", "replace") + middle + tail.decode("utf-8", "replace")
        return Captured(text, self._seen, truncated=True)


class PassOn:
    """Passes bytes on to a descriptor as they come, no faster than it takes them, and keeps nothing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._seen = 0
        # A pipe that polls writable takes this much without blocking (POSIX PIPE_BUF); a file takes any.
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._room = _CHUNK if regular else 4096

    def ready(self) -> int | None:
        """Return the descriptor: nothing is read that can't be passed on."""
        return self._descriptor

    def room(self) -> int:
        """Return what a writable descriptor takes without blocking."""
        return self._room

    def feed(self, chunk: bytes) -> None:
        """Write all of it."""
        self._seen += len(chunk)
        while chunk:
            chunk = chunk[os.write(self._descriptor, chunk) :]

    def captured(self) -> Captured:
        """Describe what came: nothing is kept, and nothing was dropped."""
        return Captured("", self._seen, truncated=False)


def _without_partial_end(data: bytes) -> bytes:
    """Drop the beginning of a UTF-8 character that a cut left at the end."""
    for back in range(1, min(_LONGEST, len(data)) + 1):
        byte = data[-back]
        if _continues(byte):
            continue
        length = next((n for n, (mask, mark) in _LEADS.items() if byte & mask == mark), 1)
        return data[:-back] if length > back else data
    return data


def _without_partial_start(data: bytes) -> bytes:
    """Drop the rest of a UTF-8 character that a cut left at the start."""
    skip = 0
    while skip < min(_LONGEST - 1, len(data)) and _continues(data[skip]):
        skip += 1
    return data[skip:]


def _continues(byte: int) -> bool:
    """Tell whether a byte is not the first of its character."""
    return byte & 0b11000000 == _CONTINUATION
