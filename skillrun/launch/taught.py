"""What a launcher was taught: parts of plans that many runs share, each sent once and referred to by its number."""

from __future__ import annotations

import array
import itertools
import json
import os
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_FRAMES = 64  # as many as the launcher keeps (confine/stock.py)


class Taught:
    """The bases and the frames that one launcher knows."""

    def __init__(self) -> None:
        """Begin with none."""
        self._bases: dict[str, int] = {}
        self._frames: dict[str, int] = {}
        self._numbers = itertools.count(1)  # of frames: none is ever used again
        self._last: str | None = None

    def base(self, by: socket.socket, words: str) -> int:
        """Return the number of a base, which is taught if it must be."""
        number = self._bases.get(words)
        if number is None:
            number = len(self._bases) + 1
            _teach(by, {"base": number}, words)
            self._bases[words] = number
        return number

    def frame(self, by: socket.socket, words: str) -> int | None:
        """Return the number of a frame; None for one that did not come twice in a row: nothing is built ahead for it."""
        number = self._frames.get(words)
        if number is None and words == self._last:
            number = next(self._numbers)
            _teach(by, {"frame": number}, words)
            self._frames[words] = number
            if len(self._frames) > _MOST_FRAMES:
                del self._frames[next(iter(self._frames))]
        self._last = words
        return number


def written(wire: Mapping[str, Any]) -> tuple[str | None, bytes]:
    """Return the frame of a plan, as JSON, if its world may be built ahead, and the whole plan as JSON.

    A traced run has a domain of another kind, so its world is its own.
    """
    if "frame" not in wire:
        return None, json.dumps(wire).encode()
    frame = json.dumps(wire["frame"])
    rest = json.dumps({name: value for name, value in wire.items() if name != "frame"})
    plan = f'{rest[:-1]}, "frame": {frame}}}'.encode()
    return (None if "told" in wire or "traced" in wire else frame), plan


def _teach(by: socket.socket, message: Mapping[str, Any], words: str) -> None:
    """Send words that a number stands for from now on."""
    descriptor = memory_file(words.encode())
    try:
        post(by, message, [descriptor])
    finally:
        os.close(descriptor)


def post(by: socket.socket, message: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """Send one message; the kernel keeps messages of several threads apart."""
    rights = array.array("i", descriptors)
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
    by.sendmsg([json.dumps(message).encode()], ancillary, socket.MSG_NOSIGNAL)


def memory_file(words: bytes) -> int:
    """Put words into a file without a name, rewound: a message of the socket could not hold them all."""
    descriptor = os.memfd_create("skillrun", os.MFD_CLOEXEC)
    try:
        rest = memoryview(words)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
