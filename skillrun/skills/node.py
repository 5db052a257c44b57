"""The strict YAML tree: values with the places they were written at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.problem import At


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar read by the YAML 1.2 core rules; `text` is how it was written, quotes removed."""

    value: str | int | float | bool | None
    text: str
    at: At


@dataclass(frozen=True, slots=True)
class Items:
    """A sequence."""

    items: tuple[Node, ...]
    at: At

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items)


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key: value` of a mapping, with the place of the key; the value has its own."""

    key: str
    at: At
    value: Node


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping with string keys, in the order they were written, each at most once."""

    entries: tuple[Entry, ...]
    at: At

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def get(self, key: str) -> Entry | None:
        """Return the entry of a key, or None when it is absent."""
        for entry in self.entries:
            if entry.key == key:
                return entry
        return None


Node: TypeAlias = Scalar | Items | Mapping
