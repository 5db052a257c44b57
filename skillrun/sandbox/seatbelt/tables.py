"""Tables: the operations and filters of the language, from `profiles/seatbelt/`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun import resources

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Operations:
    """The tree of operations. `parents` of a root is None; `built_in` is what a root answers, True for allow.

    `unsure` are roots whose built-in answer is disputed or not known; `recent` came after the table.
    """

    parents: Mapping[str, str | None]
    built_in: Mapping[str, bool]
    unsure: frozenset[str]
    recent: frozenset[str]
    aliases: Mapping[str, str]
    without_effect: frozenset[str]
    without_filters: frozenset[str]

    def known(self, name: str) -> bool:
        """Tell whether a profile may name this operation."""
        return name in self.parents or name in self.aliases or name in self.without_effect

    def line(self, name: str) -> tuple[str, ...]:
        """Give an operation and those that are asked after it, up to the root."""
        line = []
        step: str | None = name
        while step is not None:
            line.append(step)
            step = self.parents[step]
        return tuple(line)


@dataclass(frozen=True, slots=True)
class FilterKind:
    """What a filter takes and asks for. `compare` is how texts are compared: equal, prefix or regex.

    `of` are beginnings of the names of the operations that have it, for those that ask for a name.
    """

    name: str
    takes: str
    asks: str
    compare: str = "equal"
    space: str | None = None
    words: frozenset[str] = frozenset()
    of: tuple[str, ...] = ()


@functools.cache
def operations() -> Operations:
    """Return the operations."""
    table = resources.table("seatbelt/operations")
    parents = {**table["parents"], **table["later"]}
    built = dict.fromkeys(table["built_in"]["allow"], True) | dict.fromkeys(table["built_in"]["deny"], False)
    roots = {name for name, parent in parents.items() if parent is None}
    return Operations(
        parents=parents,
        built_in={root: built.get(root, False) for root in roots},
        unsure=frozenset(table["disputed"]) | (roots - set(built)),
        recent=frozenset(table["later"]),
        aliases=table["aliases"],
        without_effect=frozenset(table["without_effect"]),
        without_filters=frozenset(table["without_filters"]),
    )


@functools.cache
def filter_kinds() -> Mapping[str, FilterKind]:
    """Return every filter by each of its names."""
    table = resources.table("seatbelt/filters")
    kinds: dict[str, FilterKind] = {}
    for name, line in table["filters"].items():
        kinds[name] = FilterKind(
            name,
            takes=line["takes"],
            asks=line["asks"],
            compare={"prefix": "prefix", "regex": "regex"}.get(name, "equal"),
            space=line.get("space"),
            words=frozenset(line.get("words", ())),
            of=tuple(line.get("of", ())),
        )
        for compare in ("prefix", "regex") if line.get("variants") else ():
            variant = f"{name}-{compare}"
            kinds[variant] = FilterKind(
                variant,
                takes="text",
                asks=line["asks"],
                compare=compare,
                space=line.get("space"),
                of=kinds[name].of,
            )
    aliases = table["aliases"]
    kinds |= {alias: kinds[name] for alias, name in aliases.items() if name in kinds}
    kinds |= {
        f"{alias}-{compare}": kinds[f"{name}-{compare}"]
        for alias, name in aliases.items()
        for compare in ("prefix", "regex")
        if f"{name}-{compare}" in kinds
    }
    return kinds


@functools.cache
def modifiers() -> Mapping[str, str]:
    """Return each modifier by each of its names, with the decision it belongs to."""
    table = resources.table("seatbelt/filters")
    known = {name: line["side"] for name, line in table["modifiers"].items()}
    return known | {alias: known[name] for alias, name in table["modifier_aliases"].items()}


@functools.cache
def links() -> Mapping[str, str]:
    """Return the links that every Mac has in its root."""
    found: Mapping[str, str] = resources.table("seatbelt/filters")["links"]
    return found


@functools.cache
def protocols() -> frozenset[str]:
    """Return what `remote` and `local` take first, unix sockets apart."""
    return frozenset(resources.table("seatbelt/filters")["protocols"])


@functools.cache
def valued_modifiers() -> frozenset[str]:
    """Return the modifiers that take a value."""
    return frozenset(resources.table("seatbelt/filters")["modifiers_with_value"])
