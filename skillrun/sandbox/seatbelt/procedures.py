"""Procedures: the ordinary ones of Scheme that profiles use, and those over strings that Seatbelt adds."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from skillrun.sandbox.seatbelt.regexes import quoted
from skillrun.sandbox.seatbelt.scheme import Builtin, Text, Word, true
from skillrun.sandbox.seatbelt.source import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillrun.sandbox.seatbelt.scheme import Machine
    from skillrun.sandbox.seatbelt.source import Span

_MOST_TEXT: Final = 1 << 20  # characters of one string
_MOST_ITEMS: Final = 100_000  # of one list
_MOST_COMPARED: Final = 20_000  # parts of two values
_MOST_NUMBER: Final = 1 << 53


def text(value: Any, span: Span) -> Text:
    """Return a string. Raises Fault for anything else, `#f` of an unset parameter included."""
    if not isinstance(value, Text):
        raise Fault("type-error", f"a string is expected here, not {describe(value)}", span)
    return value


def describe(value: Any) -> str:
    """Name what a value is."""
    if isinstance(value, bool):
        return "a boolean"
    kinds = {Text: "a string", int: "a number", list: "a list"}
    return kinds.get(type(value), f"a {type(value).__name__.lower()}")


def _number(value: Any, span: Span) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Fault("type-error", f"a number is expected here, not {describe(value)}", span)
    if abs(value) > _MOST_NUMBER:
        raise Fault("too-large", "a number beyond what is counted", span)
    return value


def _list(value: Any, span: Span) -> list[Any]:
    if not isinstance(value, list):
        raise Fault("type-error", f"a list is expected here, not {describe(value)}", span)
    if len(value) > _MOST_ITEMS:
        raise Fault("too-large", "a list longer than any real profile has", span)
    return value


def joined(strings: list[Text]) -> Text:
    """Put strings together, with what went into each."""
    return Text(
        "".join(strings),
        parameters=tuple(dict.fromkeys(name for one in strings for name in one.parameters)),
        spliced=any(one.spliced or (one.raw and len(strings) > 1) for one in strings),
    )


def _append(values: list[Any], span: Span) -> Text:
    strings = [text(value, span) for value in values]
    if sum(map(len, strings)) > _MOST_TEXT:
        raise Fault("too-large", "a string longer than any real profile has", span)
    return joined(strings)


def _substring(values: list[Any], span: Span) -> Text:
    whole = text(values[0], span)
    start = _number(values[1], span)
    end = _number(values[2], span) if len(values) > 2 else len(whole)  # noqa: PLR2004 - an optional third
    if not 0 <= start <= end <= len(whole):
        raise Fault("type-error", "`substring` beyond the end of the string", span)
    return Text(whole[start:end], parameters=whole.parameters, spliced=whole.spliced)


def _quote(values: list[Any], span: Span) -> Text:
    plain = text(values[0], span)
    return Text(quoted(plain), parameters=plain.parameters)


def _to_number(values: list[Any], span: Span) -> Any:
    digits = text(values[0], span)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else False  # noqa: PLR2004 - see _MOST_NUMBER


def _compared(
    test: Callable[[Any, Any], bool], convert: Callable[[Any, Span], Any]
) -> Callable[[list[Any], Span], bool]:
    def compare(values: list[Any], span: Span) -> bool:
        converted = [convert(value, span) for value in values]
        return all(test(a, b) for a, b in itertools.pairwise(converted))

    return compare


def _same(values: list[Any], span: Span) -> bool:
    """Compare two values part by part: a list that holds another one twice, again and again, has no end to compare."""
    pending = [(values[0], values[1])]
    for _ in range(_MOST_COMPARED):
        if not pending:
            return True
        one, other = pending.pop()
        if one is other:
            continue
        if isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            pending += zip(one, other, strict=True)
        elif type(one) is not type(other) or not isinstance(one, str | int | Word) or one != other:
            return False
    raise Fault("too-long", "values with more parts than any real profile compares", span)


def _member(values: list[Any], span: Span) -> Any:
    items = _list(values[1], span)
    for place, item in enumerate(items):
        if _same([values[0], item], span):
            return items[place:]
    return False


def _error(values: list[Any], span: Span) -> None:
    raise Fault("error", "the profile gives up: " + " ".join(map(_shown, values)), span)


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, str | int) else describe(value)


def _first(values: list[Any], span: Span) -> Any:
    items = _list(values[0], span)
    if not items:
        raise Fault("type-error", "the first of an empty list", span)
    return items[0]


def procedures(machine: Machine) -> dict[str, Builtin]:
    """Return the procedures by name; those that call others need the machine."""

    def fixed(name: str, least: int, most: int | None, call: Callable[[list[Any], Span], Any]) -> Builtin:
        def checked(values: list[Any], span: Span) -> Any:
            if len(values) < least or (most is not None and len(values) > most):
                raise Fault("arity", f"`{name}` is called with {len(values)} arguments", span)
            return call(values, span)

        return Builtin(name, checked)

    def over(values: list[Any], span: Span) -> list[Any]:
        lists = [_list(value, span) for value in values[1:]]
        return [machine.apply(values[0], list(items), span) for items in zip(*lists, strict=False)]

    def apply(values: list[Any], span: Span) -> Any:
        return machine.apply(values[0], [*values[1:-1], *_list(values[-1], span)], span)

    def whole(values: list[Any], span: Span) -> int:
        return _number(sum(_number(value, span) for value in values), span)

    def less(values: list[Any], span: Span) -> int:
        first, *others = (_number(value, span) for value in values)
        return _number(first - sum(others) if others else -first, span)

    table: tuple[tuple[str, int, int | None, Callable[[list[Any], Span], Any]], ...] = (
        ("string-append", 0, None, _append),
        ("substring", 2, 3, _substring),
        ("string-length", 1, 1, lambda v, s: len(text(v[0], s))),
        ("string->number", 1, 1, _to_number),
        ("number->string", 1, 1, lambda v, s: Text(str(_number(v[0], s)))),
        ("string?", 1, 1, lambda v, _: isinstance(v[0], Text)),
        ("string=?", 1, None, _compared(lambda a, b: a == b, text)),
        ("regex-quote", 1, 1, _quote),
        ("eq?", 2, 2, _same),
        ("eqv?", 2, 2, _same),
        ("equal?", 2, 2, _same),
        ("null?", 1, 1, lambda v, _: v[0] == []),
        ("list?", 1, 1, lambda v, _: isinstance(v[0], list)),
        ("pair?", 1, 1, lambda v, _: isinstance(v[0], list) and bool(v[0])),
        (
            "procedure?",
            1,
            1,
            lambda v, _: callable(getattr(v[0], "call", None)) or type(v[0]).__name__ == "Closure",
        ),
        ("not", 1, 1, lambda v, _: not true(v[0])),
        ("=", 1, None, _compared(lambda a, b: a == b, _number)),
        ("<", 1, None, _compared(lambda a, b: a < b, _number)),
        (">", 1, None, _compared(lambda a, b: a > b, _number)),
        ("<=", 1, None, _compared(lambda a, b: a <= b, _number)),
        (">=", 1, None, _compared(lambda a, b: a >= b, _number)),
        ("+", 0, None, whole),
        ("-", 1, None, less),
        ("list", 0, None, lambda v, _: list(v)),
        ("cons", 2, 2, lambda v, s: [v[0], *_list(v[1], s)]),
        ("car", 1, 1, _first),
        ("cdr", 1, 1, lambda v, s: _list(v[0], s)[1:]),
        ("length", 1, 1, lambda v, s: len(_list(v[0], s))),
        ("append", 0, None, lambda v, s: _list([item for one in v for item in _list(one, s)], s)),
        ("reverse", 1, 1, lambda v, s: _list(v[0], s)[::-1]),
        ("member", 2, 2, _member),
        ("memq", 2, 2, _member),
        ("map", 2, None, over),
        ("for-each", 2, None, over),
        ("apply", 2, None, apply),
        ("error", 0, None, _error),
    )
    return {name: fixed(name, least, most, call) for name, least, most, call in table}
