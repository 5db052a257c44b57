"""Own: state of one process, which a forked copy of it must not share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Own(Generic[T]):
    """Gives every process a state of its own.

    What a thread held at a fork is held for ever in the copy, and what was under way there is not the
    copy's: it starts with a fresh state.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._states: dict[int, T] = {}

    def get(self) -> T:
        """Return the state of this process."""
        pid = os.getpid()
        found = self._states.get(pid)
        # setdefault: of two threads that come first at once, both get the same.
        return self._states.setdefault(pid, self._make()) if found is None else found
