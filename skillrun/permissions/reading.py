"""Reading: typed values out of the strict tree, the same way for SKILL.md and for skillrun.yaml.

Nothing is converted: a string that looks like a number or a boolean is a wrong type, since a reader
that guesses turns `network: "false"` into network (cases A-07).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from skillrun.permissions.endpoint import Endpoint
from skillrun.permissions.spelled import Base, Spelled, path_fault
from skillrun.problem import At, Problem, error
from skillrun.skills.node import Items, Mapping, Scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillrun.skills.node import Entry, Node

T = TypeVar("T")
Reach: TypeAlias = Endpoint | bool
"""One line of a network list, or the word for all or nothing."""

LIMIT_NAMES: Final = ("memory", "processes", "file_size", "output")
_UNITS: Final = {
    "": 1,
    "B": 1,
    **{f"{prefix}iB": 1024 ** (i + 1) for i, prefix in enumerate("KMGT")},
    **{f"{prefix}B": 1000 ** (i + 1) for i, prefix in enumerate("kMGT")},
}
_SIZE = re.compile(r"([0-9]{1,18})\s?([A-Za-z]{0,3})")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST = 2**62  # what a kernel limit can hold; beyond it a number says "no limit", which no key may mean


@dataclass(slots=True)
class Reader:
    """Reads typed values and collects what is wrong under one rule prefix. A method returns None after a problem."""

    prefix: str
    problems: list[Problem] = field(default_factory=list)

    def fault(self, rule: str, message: str, at: At, advice: str | None = None) -> None:
        """Note one error."""
        self.problems.append(error(f"{self.prefix}-{rule}", message, at=at, help=advice))

    def wrong_type(self, key: str, node: Node, want: str) -> None:
        """Note that a value has the wrong type, and what to write."""
        self.fault("type", f"`{key}` is {kind(node)}", node.at, f"write {want}")

    def paths(self, key: str, node: Node, base: Base) -> tuple[Spelled, ...] | None:
        """Read a list of paths; null is the empty list, a lone string is one path."""
        if is_null(node):
            return ()
        want = f'a list of paths: `{key}: ["./data"]`'
        if isinstance(node, Scalar) and isinstance(node.value, str):
            if "," in node.value:
                self.fault("type", f"`{key}` is one text with a comma in it", node.at, f"write {want}")
                return None
            nodes: Iterable[Node] = (node,)
        elif isinstance(node, Items):
            nodes = node
        else:
            self.wrong_type(key, node, want)
            return None
        return self._each(nodes, lambda item: self._path(key, item, base))

    def network(self, key: str, node: Node) -> tuple[tuple[Reach, At], ...] | None:
        """Read `true`, `false` or a list of hosts; null and the empty list are false."""
        if is_null(node):
            return ()
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return ((True, node.at),) if node.value else ()
        if not isinstance(node, Items):
            want = "`true`, `false`, or a list of hosts: `[api.example.com:443]`"
            self.wrong_type(key, node, want)
            return None
        return self._each(node, lambda item: self._endpoint(key, item))

    def names(self, key: str, node: Node) -> tuple[tuple[str, At], ...] | None:
        """Read a list of variable names; null is the empty list."""
        if is_null(node):
            return ()
        if not isinstance(node, Items):
            self.wrong_type(key, node, f"a list of variable names: `{key}: [TZ]`")
            return None
        return self._each(node, lambda item: self._name(key, item))

    def seconds(self, key: str, node: Node) -> float | None:
        """Read a number of seconds, above 0 and finite. The caller says what null means."""
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.wrong_type(key, node, f"a number of seconds: `{key}: 30`")
            return None
        if not (math.isfinite(value) if isinstance(value, float) else value < _MOST) or value <= 0:
            self.fault("type", f"`{key}` is not a number above 0", node.at, f"write seconds: `{key}: 30`")
            return None
        return value

    def limits(self, key: str, node: Node) -> tuple[tuple[str, int, At], ...] | None:
        """Read a map of bounds: bytes as a number or as `512MiB`, processes as a number."""
        if not isinstance(node, Mapping):
            self.wrong_type(key, node, "a map: `limits: {memory: 1GiB, processes: 64}`")
            return None
        known = [entry for entry in node if entry.key in LIMIT_NAMES]
        for entry in node:
            if entry not in known:
                self.fault(
                    "unknown-key",
                    f"`{key}` has no `{entry.key}`",
                    entry.at,
                    f"it has {', '.join(LIMIT_NAMES)}",
                )
        values = [(entry.key, self._limit(entry), entry.value.at) for entry in known]
        if len(known) < len(node.entries) or any(value is None for _, value, _ in values):
            return None
        return tuple((name, value, at) for name, value, at in values if value is not None)

    def word(self, key: str, node: Node, words: tuple[str, ...]) -> str | None:
        """Read one of a few words."""
        if isinstance(node, Scalar) and node.value in words and isinstance(node.value, str):
            return node.value
        self.wrong_type(key, node, " or ".join(f"`{key}: {word}`" for word in words))
        return None

    def truth(self, key: str, node: Node) -> bool | None:
        """Read a boolean."""
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self.wrong_type(key, node, f"`{key}: true` or `{key}: false`")
        return None

    def text(self, key: str, node: Node) -> str | None:
        """Read a string that is not empty."""
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value:
            return node.value
        self.wrong_type(key, node, f"a text for `{key}`")
        return None

    def _each(self, nodes: Iterable[Node], read: Callable[[Node], T | None]) -> tuple[T, ...] | None:
        values = [read(node) for node in nodes]
        return None if any(value is None for value in values) else tuple(v for v in values if v is not None)

    def _path(self, key: str, node: Node, base: Base) -> Spelled | None:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            self.wrong_type(
                f"an item of {key}", node, "each path as a text, in quotes if it looks like something else"
            )
            return None
        fault = path_fault(node.value, base)
        if fault is not None:
            self.fault("path", f"{key}: {fault[0]}", node.at, fault[1])
            return None
        return Spelled(node.value, node.at, base)

    def _endpoint(self, key: str, node: Node) -> tuple[Reach, At] | None:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            self.wrong_type(f"an item of {key}", node, "each host as a text: `api.example.com:443`")
            return None
        try:
            return Endpoint.parse(node.value), node.at
        except ValueError as wrong:
            self.fault(
                "host",
                f"{key}: `{node.value}` is no host rule: {wrong}",
                node.at,
                "write `host` or `host:port`",
            )
            return None

    def _name(self, key: str, node: Node) -> tuple[str, At] | None:
        if isinstance(node, Scalar) and isinstance(node.value, str) and _NAME.fullmatch(node.value):
            return node.value, node.at
        self.wrong_type(f"an item of {key}", node, "each variable by its name, letters, digits and `_`")
        return None

    def _limit(self, entry: Entry) -> int | None:
        node = entry.value
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, str) and entry.key != "processes":
            match = _SIZE.fullmatch(value)
            value = int(match[1]) * _UNITS[match[2]] if match and match[2] in _UNITS else None
        if isinstance(value, bool) or not isinstance(value, int):
            example = "64" if entry.key == "processes" else "512MiB"
            self.wrong_type(entry.key, node, f"a whole number or a size: `{entry.key}: {example}`")
            return None
        # Keeping no output and writing no file are sensible wishes; a run in no memory is a typing error.
        least = 0 if entry.key in {"output", "file_size"} else 1
        if not least <= value < _MOST:
            self.fault("type", f"`{entry.key}` is out of range", node.at, f"write a number from {least}")
            return None
        return value


def is_null(node: Node) -> bool:
    """Whether a value is null."""
    return isinstance(node, Scalar) and node.value is None


def kind(node: Node) -> str:
    """Name the type of a value for a person."""
    if isinstance(node, Mapping):
        return "a map"
    if isinstance(node, Items):
        return "a list"
    if node.value is None:
        return "null"
    if isinstance(node.value, bool):
        return "a boolean"
    return f"the text `{node.value}`" if isinstance(node.value, str) else f"the number `{node.text}`"
