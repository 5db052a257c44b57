"""Shelf: files and long texts of results, kept in memory for a client that reads them by their link."""

from __future__ import annotations

import secrets
import threading
import urllib.parse
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

MOST: Final = 64 << 20
"""Bytes kept in all; the oldest go first. A run gives 16 MiB of files at most."""
SCHEME: Final = "skillrun-output"


@dataclass(frozen=True, slots=True)
class Kept:
    """One thing on the shelf."""

    uri: str
    name: str
    media_type: str
    data: bytes


class Shelf:
    """Thread-safe. Links hold chance, so that one client of a shared server can't guess another's."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._size = 0
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, name: str, media_type: str, data: bytes) -> Kept:
        """Keep something and return it with its link."""
        uri = f"{SCHEME}://{secrets.token_urlsafe(16)}/{urllib.parse.quote(name, safe='')}"
        kept = Kept(uri, name, media_type, data)
        with self._lock:
            self._kept[uri] = kept
            self._size += len(data)
            while self._size > self._most and len(self._kept) > 1:
                self._size -= len(self._kept.popitem(last=False)[1].data)
        return kept

    def get(self, uri: str) -> Kept | None:
        """Return what a link leads to; None when it is gone or never was."""
        with self._lock:
            return self._kept.get(uri)
