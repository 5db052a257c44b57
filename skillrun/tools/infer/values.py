"""Values: what expressions of a Python source come to, as far as plain reading tells.

Nothing is imported and nothing is called but a few methods of plain values that can't grow without bound.
"""

from __future__ import annotations

import ast
import enum
import inspect
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LARGEST: Final = 1 << 16
"""Characters or items that a value may grow to; a longer one is unknown."""
MOST_STEPS: Final = 50_000
"""Expressions and statements looked at in one source; the scripts of public skills take up to 4,000."""
MOST_COPIED: Final = 2_000_000
"""Items copied from one collection into another: few steps of a hostile source could copy for hours."""
_MOST_DIGITS: Final = 20  # of `round`, which works out 10 to that power


class Unknown(enum.Enum):
    """What an expression comes to that can't be read."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN


@dataclass(frozen=True, slots=True)
class Symbol:
    """Something of another module, by its dotted name."""

    dotted: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """A method or attribute of a value that is not plain."""

    owner: Any
    name: str


@dataclass(frozen=True, slots=True)
class Lazy:
    """An expression that nobody has needed so far, and the names it was written among."""

    node: ast.expr
    names: Names


Names: TypeAlias = "dict[str, Any]"
PLAIN: Final = (str, int, float, bool, type(None), list, tuple, dict, set, range)


class Values:
    """Works out expressions; `call` and `attribute` are for what is not plain."""

    def __init__(self) -> None:
        self.steps = 0
        self.copied = 0

    def spend(self, items: int) -> None:
        """Note that so many items were copied; when that was too much, nothing more is looked at."""
        self.copied += items
        if self.copied > MOST_COPIED:
            self.steps = MOST_STEPS + 1

    def value(self, node: ast.AST | None, names: Names) -> Any:
        """Return what an expression comes to, UNKNOWN when that can't be read."""
        reader = _READERS.get(type(node))
        self.steps += 1
        if reader is None or self.steps > MOST_STEPS:
            return UNKNOWN
        found = reader(self, node, names)
        self.spend(len(found) if isinstance(found, list | dict) else 0)
        return UNKNOWN if isinstance(found, str | list | dict) and len(found) > LARGEST else found

    def name(self, node: ast.Name, names: Names) -> Any:
        """Look a name up; what was put off is worked out now, once."""
        found = names.get(node.id, _BUILTINS.get(node.id, UNKNOWN))
        if isinstance(found, Lazy):
            names[node.id] = UNKNOWN  # for a name that is made of itself
            found = names[node.id] = self.value(found.node, found.names)
        return found

    def call(self, node: ast.Call, names: Names) -> Any:
        """Call something plain."""
        function = self.value(node.func, names)
        arguments = [self.value(argument, names) for argument in node.args]
        if any(argument is UNKNOWN for argument in arguments) or node.keywords:
            return UNKNOWN
        return plain_call(function, arguments)

    def attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute of a value."""
        if isinstance(owner, Symbol):
            return Symbol(f"{owner.dotted}.{name}")
        return UNKNOWN if owner is UNKNOWN else Attribute(owner, name)

    def all_of(self, nodes: Iterable[ast.expr], names: Names) -> list[Any]:
        """Return the values of several expressions; a starred one gives all its items."""
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = self.value(node.value, names)
                short = isinstance(inner, list | tuple) and len(values) + len(inner) < LARGEST
                values += inner if short else [UNKNOWN]
            else:
                values.append(self.value(node, names))
        return values

    def pairs(self, node: ast.Dict, names: Names) -> Any:
        """Return a dictionary with the values that can be read; its keys must be."""
        made: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.value(item, names)
                if not isinstance(inner, dict):
                    return UNKNOWN
                made.update(inner)
                continue
            name = self.value(key, names)
            if not isinstance(name, str | int | float | bool):
                return UNKNOWN
            made[name] = self.value(item, names)
        return made

    def joined(self, node: ast.JoinedStr, names: Names) -> Any:
        """Return an f-string; a part with a format of its own can't be read."""
        text = ""
        for piece in node.values:
            part = piece.value if isinstance(piece, ast.FormattedValue) and not piece.format_spec else piece
            inner = self.value(part, names)  # one with a format of its own has no reader
            if not isinstance(inner, str | int | float | bool) or len(text) > LARGEST:
                return UNKNOWN
            text += str(inner)
        return text

    def operation(self, node: ast.BinOp, names: Names) -> Any:
        """Return a sum, or a product that stays small."""
        left, right = self.value(node.left, names), self.value(node.right, names)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if (
            isinstance(node.op, ast.Add)
            and type(left) is type(right)
            and isinstance(left, str | list | tuple)
        ):
            return left + right if len(left) + len(right) < LARGEST else UNKNOWN
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if numbers and max(abs(left), abs(right)) < LARGEST:
            return _arithmetic(node.op, left, right)
        if isinstance(left, dict) and isinstance(right, dict) and isinstance(node.op, ast.BitOr):
            return {**left, **right}
        if isinstance(left, str) and isinstance(right, int) and isinstance(node.op, ast.Mult):
            return left * right if len(left) * right < LARGEST else UNKNOWN
        return UNKNOWN

    def signed(self, node: ast.UnaryOp, names: Names) -> Any:
        """Return a number with its sign, or a truth turned round."""
        inner = self.value(node.operand, names)
        if isinstance(node.op, ast.Not):
            return not inner if isinstance(inner, bool) else UNKNOWN
        if isinstance(inner, int | float) and not isinstance(node.op, ast.Invert):
            return -inner if isinstance(node.op, ast.USub) else inner
        return UNKNOWN

    def item(self, node: ast.Subscript, names: Names) -> Any:
        """Return one item of something plain."""
        owner, key = self.value(node.value, names), self.value(node.slice, names)
        if isinstance(owner, dict | list | tuple | str) and isinstance(key, str | int):
            try:
                return owner[key]  # type: ignore[index] # what does not fit raises TypeError
            except (LookupError, TypeError):
                return UNKNOWN
        return UNKNOWN

    def comparison(self, node: ast.Compare, names: Names) -> Any:
        """Return whether two plain values are equal, or one is in the other."""
        left, right = self.value(node.left, names), self.value(node.comparators[0], names)
        plain = (str, int, float, bool, type(None))
        if len(node.ops) > 1 or not isinstance(left, plain):
            return UNKNOWN
        match node.ops[0]:
            case ast.Eq() | ast.NotEq() if isinstance(right, plain):
                return (left == right) is isinstance(node.ops[0], ast.Eq)
            case ast.In() | ast.NotIn() if isinstance(right, list | dict) and UNKNOWN not in right:
                return (left in right) is isinstance(node.ops[0], ast.In)
        return UNKNOWN

    def choice(self, node: ast.IfExp, names: Names) -> Any:
        """Return the branch that is sure to be taken."""
        test = self.value(node.test, names)
        return self.value(node.body if test else node.orelse, names) if isinstance(test, bool) else UNKNOWN

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, names: Names) -> Any:
        """Return a list made of one plain sequence without a condition."""
        loop = node.generators[0]
        items = self.items(loop.iter, names)
        if len(node.generators) > 1 or loop.ifs or items is None:
            return UNKNOWN
        made: list[Any] = []
        for one in items:
            if self.steps > MOST_STEPS:
                return UNKNOWN
            self.spend(len(names))
            inner = dict(names)
            bind(loop.target, one, inner)
            made.append(self.value(node.elt, inner))
        return made

    def items(self, node: ast.expr, names: Names) -> list[Any] | None:
        """Return what a loop over an expression would see; None when that can't be read."""
        found = self.value(node, names)
        return _listed(found) if isinstance(found, list | tuple | set | dict | range) else None


def bind(target: ast.expr, value: Any, names: Names) -> None:
    """Give a loop's or an assignment's target its value."""
    if isinstance(target, ast.Name):
        names[target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        known = isinstance(value, list | tuple) and len(value) == len(target.elts)
        for place, inner in enumerate(target.elts):
            bind(inner, value[place] if known else UNKNOWN, names)


def plain_call(function: Any, arguments: list[Any]) -> Any:
    """Call a method of a plain value, or a builtin, that is safe to call and bounded."""
    if isinstance(function, Attribute) and isinstance(function.owner, PLAIN):
        allowed = _METHODS.get((type(function.owner), function.name))
        return UNKNOWN if allowed is None else _tried(allowed, [function.owner, *arguments])
    if isinstance(function, Symbol):
        return _tried(_FUNCTIONS[function.dotted], arguments) if function.dotted in _FUNCTIONS else UNKNOWN
    return UNKNOWN


def _tried(function: Callable[..., Any], arguments: list[Any]) -> Any:
    try:
        found = function(*arguments)
    except Exception:  # noqa: BLE001 - the source may be wrong in any way, and then nothing is known
        return UNKNOWN
    return found


def _arithmetic(operator: ast.operator, left: float, right: float) -> Any:
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case _:
            return UNKNOWN


def _dedent(text: str) -> str:
    return inspect.cleandoc(text)


def _scalar(value: Any) -> bool:
    """Whether a value holds no others: a list of lists of lists may be endless to compare or to write out."""
    return value is None or isinstance(value, str | int | float)


def _text(value: Any = "") -> Any:
    return str(value) if _scalar(value) else UNKNOWN


def _ordered(items: Any) -> Any:
    listed = _listed(items)
    return sorted(listed) if all(map(_scalar, listed)) else UNKNOWN


def _extreme(choose: Callable[..., Any], *items: Any) -> Any:
    listed = _listed(items[0] if len(items) == 1 else items)
    return choose(listed) if all(map(_scalar, listed)) else UNKNOWN


def _rounded(number: Any, digits: Any = None) -> Any:
    return round(number, digits) if digits is None or abs(digits) <= _MOST_DIGITS else UNKNOWN


def _listed(items: Any) -> list[Any]:
    """Write a sequence out, as long as it is short; the range of a hostile source may have no end in sight."""
    if isinstance(items, range):
        items = items[: LARGEST + 1]
    return list(items)[:LARGEST]


def _join(separator: str, items: list[Any]) -> Any:
    if not all(isinstance(item, str) for item in items):
        return UNKNOWN
    long = len(separator) * len(items) + sum(map(len, items)) > LARGEST
    return UNKNOWN if long else separator.join(items)


def _format(text: str, *values: Any) -> Any:
    plain = "%" not in text and "{" not in text.replace("{}", "")
    if not plain or text.count("{}") != len(values) or sum(len(str(value)) for value in values) > LARGEST:
        return UNKNOWN
    return text.replace("{}", "%s") % values


def _replace(text: str, old: str, new: str) -> Any:
    return text.replace(old, new) if old and len(text) * len(new) < LARGEST * 16 else UNKNOWN


_METHODS: Final[dict[tuple[type, str], Callable[..., Any]]] = {
    (dict, "keys"): list, (dict, "values"): lambda owner: list(owner.values()),
    (dict, "items"): lambda owner: list(owner.items()), (dict, "get"): dict.get, (dict, "copy"): dict,
    (str, "strip"): str.strip, (str, "lower"): str.lower, (str, "upper"): str.upper, (str, "title"): str.title,
    (str, "split"): str.split, (str, "join"): _join, (str, "format"): _format, (str, "splitlines"): str.splitlines,
    (str, "replace"): _replace, (str, "lstrip"): str.lstrip, (str, "rstrip"): str.rstrip, (str, "capitalize"): str.capitalize,
}  # fmt: skip
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "list": _listed, "tuple": _listed, "sorted": _ordered, "set": _listed,
    "frozenset": _listed, "range": range, "len": len, "reversed": lambda items: _listed(items)[::-1], "str": _text, "textwrap.dedent": _dedent, "inspect.cleandoc": _dedent, "dict": dict, "enumerate": lambda items: list(enumerate(_listed(items))),
    "zip": lambda *lists: [list(pair) for pair in zip(*map(_listed, lists), strict=False)],
    "pathlib.Path": _text, "int": int, "float": float, "max": partial(_extreme, max), "min": partial(_extreme, min), "round": _rounded,
}  # fmt: skip
_BUILTINS: Final = {
    name: Symbol(name)
    for name in ("list", "tuple", "sorted", "set", "frozenset", "range", "len", "str", "int", "float", "bool",
                 "dict", "enumerate", "zip", "open", "complex", "print", "max", "min", "round", "reversed")
}  # fmt: skip
_READERS: Final[dict[type | None, Callable[[Values, Any, Names], Any]]] = {
    ast.Constant: lambda _, node, __: node.value,
    ast.Name: lambda self, node, names: self.name(node, names),
    ast.Attribute: lambda self, node, names: self.attribute(self.value(node.value, names), node.attr),
    ast.Call: lambda self, node, names: self.call(node, names),
    ast.List: lambda self, node, names: self.all_of(node.elts, names),
    ast.Tuple: lambda self, node, names: self.all_of(node.elts, names),
    ast.Set: lambda self, node, names: self.all_of(node.elts, names),
    ast.Dict: lambda self, node, names: self.pairs(node, names),
    ast.JoinedStr: lambda self, node, names: self.joined(node, names),
    ast.BinOp: lambda self, node, names: self.operation(node, names),
    ast.UnaryOp: lambda self, node, names: self.signed(node, names),
    ast.Subscript: lambda self, node, names: self.item(node, names),
    ast.IfExp: lambda self, node, names: self.choice(node, names),
    ast.ListComp: lambda self, node, names: self.comprehension(node, names),
    ast.SetComp: lambda self, node, names: self.comprehension(node, names),
    ast.GeneratorExp: lambda self, node, names: self.comprehension(node, names),
    ast.NamedExpr: lambda self, node, names: self.value(node.value, names),
    ast.Await: lambda self, node, names: self.value(node.value, names),
    ast.Compare: lambda self, node, names: self.comparison(node, names),
}  # fmt: skip
"""What reads which kind of expression. Lambdas, so that a subclass's own `call` and `attribute` are used."""
