"""Matching: filters as functions that answer yes, no, or None for what can't be told here.

Never skipped: a rule whose filter nobody knows would become one without a filter, the worst mistake an
evaluator of this language can make.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from skillrun.sandbox.seatbelt.question import FILES, NO_PATH
from skillrun.sandbox.seatbelt.regexes import compiled
from skillrun.sandbox.seatbelt.tables import filter_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillrun.sandbox.seatbelt.model import Filter
    from skillrun.sandbox.seatbelt.question import Address, Question

    Matcher = Callable[[Question], bool | None]

_SERVICE_SPACE: Final = "global"
# Of a process that is asked about by one relation, the others that may hold as well. `self` is not inside
# `same-sandbox` for certain, so profiles write both.
_ALSO: Final = {
    "self": {"same-sandbox", "pgrp"},
    "children": {"same-sandbox", "others", "pgrp"},
    "pgrp": {"same-sandbox", "others", "children"},
    "same-sandbox": {"others", "children", "pgrp"},
    "others": {"children", "pgrp"},
    "initproc": {"others"},
}


def matcher(found: Filter, step: str = "default") -> Matcher:
    """Return the function of a filter, for questions that come to `step` on their way up.

    An operation has its own filters. With another one a compiler may refuse the profile, or compare nothing
    with it: then nothing can be told.
    """
    if found.name in {"require-all", "require-any", "require-not"}:
        return _combined(found.name, [matcher(child, step) for child in found.children])
    if found.name in {"remote", "local"}:
        return _network(found)
    kind = filter_kinds().get(found.name)
    asks = "other" if kind is None else kind.asks
    texts = tuple(str(argument) for argument in found.arguments)
    if kind is None or asks == "other":
        return _unknown
    if asks == "path":
        paths = _path(kind.name, texts)
        return paths if step.startswith(FILES) else _of((*FILES, "network"), paths)
    if asks == "given":
        return _given(kind.name, found.arguments)
    named = _relation(texts) if found.name == "target" else _name(kind.compare, texts, kind.space)
    return named if step.startswith(kind.of) else _of(kind.of, named)


def _of(operations: tuple[str, ...], inner: Matcher) -> Matcher:
    """Ask only about operations whose names begin so; of any other nothing can be told."""
    return lambda asked: inner(asked) if asked.operation.startswith(operations) else None


@functools.cache
def beginnings(operation: str) -> frozenset[str]:
    """Return what filters ask of an operation's name: operations with the same ones are told apart by no filter."""
    asked = {*FILES, "network", *(begin for kind in filter_kinds().values() for begin in kind.of)}
    return frozenset(begin for begin in asked if operation.startswith(begin))


def any_of(matchers: Sequence[Matcher]) -> Matcher:
    """Return the alternative of several filters, as they stand in a rule."""
    return matchers[0] if len(matchers) == 1 else _combined("require-any", matchers)


def _unknown(_: Question) -> None:
    """Answer what can't be told."""


def _combined(name: str, matchers: Sequence[Matcher]) -> Matcher:
    if name == "require-not":
        inner = matchers[0]

        def without(asked: Question) -> bool | None:
            answer = inner(asked)
            return None if answer is None else not answer

        return without
    decisive = name != "require-all"  # one yes decides an alternative, one no a conjunction

    def together(asked: Question) -> bool | None:
        unsure = False
        for one in matchers:
            answer = one(asked)
            if answer is decisive:
                return decisive
            unsure = unsure or answer is None
        return None if unsure else not decisive

    return together


def _path(name: str, texts: tuple[str, ...]) -> Matcher:
    whole = frozenset(texts)
    if name == "literal":
        return lambda asked: asked.path in whole
    if name == "prefix":
        return lambda asked: asked.path.startswith(texts) and asked.path != NO_PATH
    if name == "subpath":
        if "/" in whole:
            return lambda asked: asked.path.startswith("/")
        below = tuple(f"{one}/" for one in texts)
        return lambda asked: asked.path.startswith(below) or asked.path in whole
    finds = _any_regex(texts)
    return lambda asked: asked.path != NO_PATH and finds(asked.path)


def _any_regex(texts: Sequence[str]) -> Callable[[str], bool | None]:
    """Tell whether any of these patterns is found."""
    searches = [compiled(one).finds for one in texts]
    if len(searches) == 1:
        return searches[0]

    def any_found(subject: str) -> bool | None:
        answers = [finds(subject) for finds in searches]
        return True if True in answers else None if None in answers else False

    return any_found


def _name(compare: str, texts: tuple[str, ...], space: str | None) -> Matcher:
    whole = frozenset(texts)
    finds = _any_regex(texts)

    def named(asked: Question) -> bool | None:
        if space is not None and asked.given.get("namespace", _SERVICE_SPACE) != space:
            return False
        if compare == "equal":
            return asked.text in whole
        if compare == "prefix":
            return asked.text.startswith(texts)
        return finds(asked.text)

    return named


def _relation(words: tuple[str, ...]) -> Matcher:
    def related(asked: Question) -> bool | None:
        if asked.text in words:
            return True
        return None if _ALSO.get(asked.text, set()) & set(words) else False

    return related


def _given(name: str, arguments: Sequence[Any]) -> Matcher:
    key = {"xattr-prefix": "xattr", "xattr-regex": "xattr"}.get(name, name)

    def told(asked: Question) -> bool | None:
        if name == "extension":  # a process has none unless somebody gave it one
            return not set(arguments).isdisjoint(asked.given.get("extension", ()))
        value = asked.given.get(key)
        if value is None:
            return None
        if name == "file-mode":
            return any(int(value) & mode == mode for mode in arguments)
        if name == "xattr-prefix":
            return str(value).startswith(tuple(arguments))
        if name == "xattr-regex":
            return _any_regex([str(one) for one in arguments])(str(value))
        return value in arguments

    return told


def _network(found: Filter) -> Matcher:
    side = found.name
    protocol, *addresses = (str(argument) for argument in found.arguments)
    paths = any_of([matcher(child, "network*") for child in found.children]) if found.children else None
    ports = [address.split(":") for address in addresses] or [["*", "*"]]

    def fits(asked: Question) -> bool | None:
        if not asked.operation.startswith("network"):
            return None
        if protocol == "unix-socket":
            if asked.address is not None or not asked.text.startswith("unix:"):
                return False
            return True if paths is None else paths(asked)
        address = asked.address
        if address is None or not _speaks(protocol, address):
            return False
        outbound = asked.operation.startswith("network-outbound")
        if outbound is (side == "local"):
            # The other end is not told. On outbound nobody agrees what `local` does: srt#131 and #225 saw it open all
            # egress, pmg#374 saw it match nothing.
            return None
        return _reaches(ports, address, outbound=outbound)

    return fits


def _speaks(protocol: str, address: Address) -> bool:
    kind, version = (protocol[:-1], int(protocol[-1])) if protocol[-1].isdigit() else (protocol, 0)
    return kind in {"ip", address.protocol} and version in {0, address.version}


def _reaches(ports: Sequence[Sequence[str]], address: Address, *, outbound: bool) -> bool | None:
    unsure = False
    for host, port in ports:
        if port not in {"*", address.port}:
            continue
        if host == "*" or address.loopback:
            return True
        # `localhost` on inbound is unproven: addresses were not told apart there (safehouse#103).
        unsure = unsure or not outbound
    return None if unsure else False
