"""Placeholders: write paths made for runs, kept as long as another run of this process has a grant there."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillrun.launch.scratch import Placeholder, make_missing, remove_untouched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from skillrun.permissions.grant import Grant


@dataclass(slots=True)
class Placeholders:
    """What runs of one process have made and where they may write.

    A run that is being prepared may have seen a placeholder as a path that exists, so none is removed
    before its grant is known.
    """

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _preparing: int = 0
    _roots: dict[Stay, tuple[Path, ...]] = field(default_factory=dict)
    _made: list[Placeholder] = field(default_factory=list)

    @contextlib.contextmanager
    def stay(self) -> Iterator[Stay]:
        """Announce a run; at its end what nobody has a grant for any more, and nobody used, is removed."""
        one = Stay(self)
        with self._lock:
            self._preparing += 1
        try:
            yield one
        finally:
            self._end(one)

    def settle(self, one: Stay, grant: Grant) -> None:
        """Make what is missing of a run's write paths, now that they are known. Raises ConfigError."""
        with self._lock:
            self._preparing -= 1
            self._roots[one] = tuple(grant.capabilities.fs_write)
            self._made += make_missing(grant.missing)

    def _end(self, one: Stay) -> None:
        with self._lock:
            if one in self._roots:
                del self._roots[one]
            else:
                self._preparing -= 1
            if self._made and not self._preparing:
                roots = [root for held in self._roots.values() for root in held]
                free = [made for made in self._made if not _needed(made.path, roots)]
                self._made = [made for made in self._made if made not in free]
                remove_untouched(free)


class Stay:
    """One run's part in the placeholders."""

    def __init__(self, all_of_them: Placeholders) -> None:
        self._all = all_of_them

    def settle(self, grant: Grant) -> None:
        """See `Placeholders.settle`."""
        self._all.settle(self, grant)


def _needed(path: Path, roots: Iterable[Path]) -> bool:
    """Whether a path is a root, lies in one, or holds one."""
    return any(path == root or root in path.parents or path in root.parents for root in roots)
