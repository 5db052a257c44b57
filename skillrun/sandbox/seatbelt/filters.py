"""Filters: what a rule's conditions are made of, each from the values or the form it is written as."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skillrun.sandbox.seatbelt.model import Filter
from skillrun.sandbox.seatbelt.procedures import describe, text
from skillrun.sandbox.seatbelt.scheme import Machine, Scope, Word, parts
from skillrun.sandbox.seatbelt.source import Fault, Span
from skillrun.sandbox.seatbelt.syntax import Kind, Node
from skillrun.sandbox.seatbelt.tables import filter_kinds, protocols

if TYPE_CHECKING:
    from skillrun.sandbox.seatbelt.tables import FilterKind

_MOST_FILTERS: Final = 20_000  # in one filter
_DEEPEST_FILTER: Final = 100
_ADDRESS: Final = re.compile(r"(?P<host>\*|localhost):(?P<port>\*|[0-9]{1,5})")
_LAST_PORT: Final = 65_535
_LONGEST_PATH: Final = 8_192  # characters; a Mac takes 1,024 bytes (PATH_MAX)
_UNIX: Final = frozenset({"unix-socket", "unix"})


@dataclass(frozen=True, slots=True)
class Operation:
    """The value of an operation's name."""

    name: str


@dataclass(frozen=True, slots=True)
class Foreign:
    """What a helper gives that an imported profile defines: it may be anything."""

    name: str
    span: Span


def as_filter(value: Any) -> Filter | None:
    """Return a filter; one that an import defines is a filter that nobody knows."""
    if isinstance(value, Foreign):
        return Filter("unknown", value.span, (value.name,))
    return value if isinstance(value, Filter) else None


def texts(kind: FilterKind, values: list[Any], span: Span) -> Filter:
    """Make a filter of texts."""
    if not values:
        raise Fault("type-error", f"`{kind.name}` without anything to compare with", span)
    for value in values:
        if value is False:
            message = f"`{kind.name}` is given `#f`, as a parameter is that has no value"
            raise Fault("undefined-param", message, span)
    strings = [text(value, span) for value in values]
    return Filter(
        kind.name,
        span,
        tuple(str(one) for one in strings),
        spliced=any(one.spliced for one in strings),
        parameters=tuple(dict.fromkeys(name for one in strings for name in one.parameters)),
    )


def worded(machine: Machine, node: Node, scope: Scope) -> Filter:
    """Make a filter of words and numbers; a word that is nobody's name stands for itself."""
    kind = filter_kinds()[str(node.items[0].value)]
    arguments: list[str | int] = []
    for item in parts(node, 1):
        bare = item.kind is Kind.WORD and not machine.defined(str(item.value), scope)
        value = str(item.value) if bare else machine.value(item, scope)
        if isinstance(value, Word | Operation):
            value = value.name
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise Fault("type-error", f"`{kind.name}` is given {describe(value)}", item.span)
        if (kind.takes == "number") is not isinstance(value, int) and kind.takes != "any":
            raise Fault("type-error", f"`{kind.name}` takes a {kind.takes}", item.span)
        if kind.words and value not in kind.words:
            raise Fault("type-error", f"`{value}` is nothing that `{kind.name}` knows", item.span)
        arguments.append(value if isinstance(value, int) else str(value))
    return Filter(kind.name, node.span, tuple(arguments))


def network(machine: Machine, node: Node, scope: Scope) -> Filter:
    """Make a filter of an address: a protocol, and `host:port` or the path of a unix socket."""
    name = {"from": "local", "to": "remote"}.get(str(node.items[0].value), str(node.items[0].value))
    first, *others = parts(node, 1)
    protocol = str(first.value) if first.kind is Kind.WORD else ""
    values = [machine.value(item, scope) for item in others]
    if protocol in _UNIX:
        if not all(isinstance(value, Filter) for value in values):
            raise Fault("type-error", "a unix socket is named by a path filter", node.span)
        return compound(name, tuple(values), node.span, ("unix-socket",))
    if protocol not in protocols():
        raise Fault("type-error", f"`{first.value}` is no protocol", first.span)
    addresses = []
    for value in values:
        address = text(value, node.span)
        found = _ADDRESS.fullmatch(address)
        port = found["port"] if found else "0"
        if port != "*" and not 1 <= int(port) <= _LAST_PORT:
            message = f"`{address}`: the host must be `*` or `localhost`, the port `*` or 1 to {_LAST_PORT}"
            raise Fault("bad-network-address", message, node.span)
        addresses.append(str(address))
    return Filter(name, node.span, (protocol, *addresses))


def ancestors(values: list[Any], span: Span) -> Filter:
    """Make a filter of the folders above paths: `/` down to each one's parent."""
    if not values:
        raise Fault("type-error", "`path-ancestors` without a path", span)
    found: dict[str, None] = {}
    for value in values:
        if value is False:
            raise Fault("undefined-param", "`path-ancestors` is given a parameter that has no value", span)
        path = text(value, span)
        if not path.startswith(("/", "${")):
            raise Fault("type-error", "`path-ancestors` takes an absolute path", span)
        if len(path) > _LONGEST_PATH:
            raise Fault("too-large", f"`path-ancestors` of a path of over {_LONGEST_PATH} characters", span)
        found.setdefault("/")
        found |= {path[:place]: None for place in range(1, len(path)) if path[place] == "/"}
    return Filter("literal", span, tuple(found))


def combined(name: str, values: list[Any], span: Span) -> Filter:
    """Combine filters."""
    children = [as_filter(value) for value in values]
    filters = tuple(child for child in children if child is not None)
    if len(filters) != len(children):
        raise Fault("type-error", f"`{name}` takes filters", span)
    if not filters or (name == "require-not" and len(filters) != 1):
        raise Fault("arity", f"`{name}` is given {len(filters)} filters", span)
    return compound(name, filters, span)


def compound(
    name: str, filters: tuple[Filter, ...], span: Span, arguments: tuple[str | int, ...] = ()
) -> Filter:
    """Make a filter of others. Raises Fault where it would be larger or deeper than any real one."""
    size = 1 + sum(one.size for one in filters)
    depth = 1 + max((one.depth for one in filters), default=0)
    if size > _MOST_FILTERS or depth > _DEEPEST_FILTER:
        raise Fault("too-large", f"over {_MOST_FILTERS} filters in one, or over {_DEEPEST_FILTER} deep", span)
    return Filter(name, span, arguments, filters, size=size, depth=depth)
