"""Words: the JSON that owner, launcher and leaders send each other, UTF-8 with nothing before or behind it."""

from __future__ import annotations

import json

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from typing import Any

_DECODER = json.JSONDecoder()


def parse(words: bytes) -> Any:
    """Return what a message says. Raises ValueError or RecursionError.

    `json.loads` also finds out the encoding and skips white space, which costs half as much again; in every process of a run
    it is the first time after a pause, with nothing of it in the processor's cache.
    """
    text = words.decode()
    message, end = _DECODER.raw_decode(text)
    if end != len(text):
        raise ValueError(f"there is more behind the message, from character {end}")
    return message
