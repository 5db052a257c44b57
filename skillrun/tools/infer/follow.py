"""Follow: read a Python source in the order in which it would run, as far as parsers are concerned.

Only statements on lines that have to do with what is looked for are followed; the rest of a long script
costs nothing. Nothing of the source is executed.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.infer.values import LARGEST, MOST_STEPS, UNKNOWN, Lazy, Symbol, Values, bind, plain_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.tools.infer.values import Names

_DEEPEST: Final = 12
"""Calls inside calls; builders of parsers are two or three deep."""
_DICT: Final = Symbol("dict")
_NAME = re.compile(r"\w+")
_DEF = re.compile(r"^([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the source, with the names it sees; `bound` is the object of a method."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    names: Names
    bound: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """A class of the source: its members, and the symbols or classes it is made from."""

    node: ast.ClassDef
    members: Names
    bases: tuple[Any, ...]

    def find(self, name: str) -> Any:
        """Look a member up, in the bases too."""
        return next((one.members[name] for one in self.line() if name in one.members), UNKNOWN)

    def line(self) -> list[Class]:
        """Return the class and those it comes from, each once: by every way there may be more than can be counted."""
        found: dict[int, Class] = {}
        waiting = [self]
        while waiting:
            one = waiting.pop()
            if id(one) not in found:
                found[id(one)] = one
                waiting += [base for base in reversed(one.bases) if isinstance(base, Class)]
        return list(found.values())

    def roots(self) -> list[str]:
        """Name the classes of other modules that this one comes from."""
        return [base.dotted for one in self.line() for base in one.bases if isinstance(base, Symbol)]


@dataclass(slots=True, eq=False)
class Instance:
    """An object of a class of the source."""

    of: Class
    attributes: dict[str, Any] = field(default_factory=dict)


class Follower(Values):
    """Follows a module. `foreign` is asked for every call of something of another module, or of an object it made."""

    def __init__(self, source: str, interesting: re.Pattern[str]) -> None:
        super().__init__()
        self._lines = relevant_lines(source, interesting)
        self._stack: list[ast.AST] = []

    def foreign(self, function: Any, arguments: list[Any], keywords: dict[str, Any], *, whole: bool) -> Any:  # noqa: ARG002 - the signature is the seam
        """Deal with a call that this class knows nothing of; `whole` is false when some keywords could not be read."""
        return UNKNOWN

    def relevant(self, node: ast.stmt) -> bool:
        """Whether a statement stands on a line that matters."""
        place = bisect_left(self._lines, node.lineno)
        return place < len(self._lines) and self._lines[place] <= (node.end_lineno or node.lineno)

    def body(self, statements: Sequence[ast.stmt], names: Names) -> Any:
        """Follow statements; return what they return, UNKNOWN when nothing is sure to be returned."""
        returned: Any = UNKNOWN
        for statement in statements:
            self.steps += 1
            if self.steps > MOST_STEPS:
                break
            follow = _STATEMENTS.get(type(statement))
            if follow is not None:
                found = getattr(self, follow)(statement, names)
                returned = found if returned is UNKNOWN else returned
        return returned

    def assign(self, node: ast.Assign | ast.AnnAssign, names: Names) -> Any:
        """Remember a value; what does not matter now is worked out when somebody asks."""
        if node.value is None:
            return UNKNOWN
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        simple = len(targets) == 1 and isinstance(targets[0], ast.Name)
        if simple and not self.relevant(node):
            assert isinstance(targets[0], ast.Name)  # noqa: S101 - for mypy
            names[targets[0].id] = Lazy(node.value, names)
            return UNKNOWN
        if not self.relevant(node):
            return UNKNOWN
        value = self.value(node.value, names)
        for target in targets:
            if isinstance(target, ast.Attribute):
                owner = self.value(target.value, names)
                if isinstance(owner, Instance):
                    owner.attributes[target.attr] = value
            else:
                bind(target, value, names)
        return UNKNOWN

    def change(self, node: ast.AugAssign, names: Names) -> Any:
        """Add to a list, or forget what was known."""
        if isinstance(node.target, ast.Name) and node.target.id in names:
            plain = isinstance(node.value, ast.List | ast.Tuple | ast.Name)
            before = self.name(node.target, names)
            more = self.value(node.value, names) if plain else UNKNOWN
            grown: Any = UNKNOWN
            if (
                isinstance(before, list)
                and isinstance(more, list | tuple)
                and len(before) + len(more) < LARGEST
            ):
                grown = [*before, *more]
            names[node.target.id] = grown
        return UNKNOWN

    def loop(self, node: ast.For | ast.AsyncFor, names: Names) -> Any:
        """Follow a loop for each item that is known, else once."""
        if not self.relevant(node):
            return UNKNOWN
        items = self.items(node.iter, names)
        for item in [UNKNOWN] if items is None else items:
            if self.steps > MOST_STEPS:
                break
            bind(node.target, item, names)
            self.body(node.body, names)
        return self.body(node.orelse, names)

    def branch(self, node: ast.If, names: Names) -> Any:
        """Follow the branch that is sure to be taken, else both."""
        if not self.relevant(node):
            return UNKNOWN
        test = self.value(node.test, names)
        first = UNKNOWN if test is False else self.body(node.body, names)
        second = UNKNOWN if test is True else self.body(node.orelse, names)
        return first if first is not UNKNOWN else second

    def parts(self, node: ast.With | ast.AsyncWith | ast.While | ast.Try, names: Names) -> Any:
        """Follow what stands inside a statement that does not branch."""
        if not self.relevant(node):
            return UNKNOWN
        for item in getattr(node, "items", ()):
            entered = self.value(item.context_expr, names)
            if item.optional_vars is not None:
                bind(item.optional_vars, entered, names)
        return self.body([*node.body, *getattr(node, "orelse", ()), *getattr(node, "finalbody", ())], names)

    def cases(self, node: ast.Match, names: Names) -> Any:
        """Follow every case."""
        for case in node.cases if self.relevant(node) else ():
            self.body(case.body, names)
        return UNKNOWN

    def expression(self, node: ast.Expr | ast.Return | ast.Raise, names: Names) -> Any:
        """Work out an expression for what it does."""
        if not isinstance(node, ast.Return) and not self.relevant(node):
            return UNKNOWN
        inner = node.exc if isinstance(node, ast.Raise) else node.value
        found = self.value(inner, names)
        return found if isinstance(node, ast.Return) else UNKNOWN

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, names: Names) -> Any:
        """Remember a function."""
        names[node.name] = Function(node, names)
        return UNKNOWN

    def define_class(self, node: ast.ClassDef, names: Names) -> Any:
        """Remember a class; its body is followed for the members."""
        self.spend(len(names))
        members: Names = {**names}
        self.body(node.body, members)
        own = {name: value for name, value in members.items() if names.get(name) is not value}
        names[node.name] = Class(node, own, tuple(self.value(base, names) for base in node.bases))
        return UNKNOWN

    def load(self, node: ast.Import | ast.ImportFrom, names: Names) -> Any:
        """Remember the names that an import brings."""
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                names[alias.asname or alias.name] = Symbol(f"{module}.{alias.name}")
            else:
                top = alias.name if alias.asname else alias.name.partition(".")[0]
                names[alias.asname or top] = Symbol(top)
        return UNKNOWN

    def attribute(self, owner: Any, name: str) -> Any:
        """Look a member of an object or a class up."""
        if isinstance(owner, Instance):
            found = owner.attributes.get(name, UNKNOWN)
            found = owner.of.find(name) if found is UNKNOWN else found
            return self._member(found, owner)
        if isinstance(owner, Class):
            return self._member(owner.find(name), None)
        return super().attribute(owner, name)

    def _member(self, found: Any, bound: Any) -> Any:
        if isinstance(found, Lazy):
            return self.value(found.node, found.names)
        return Function(found.node, found.names, bound) if isinstance(found, Function) else found

    def items(self, node: ast.expr, names: Names) -> list[Any] | None:
        """Loop over an enumeration of the source as well: its members have `value` and `name`."""
        found = self.value(node, names)
        if isinstance(found, Class) and any(root.endswith(("Enum", "Flag")) for root in found.roots()):
            members = {name: self._member(value, None) for name, value in found.members.items()}
            plain = {name: value for name, value in members.items() if isinstance(value, str | int)}
            return [Instance(found, {"value": value, "name": name}) for name, value in plain.items()]
        return super().items(node, names)

    def call(self, node: ast.Call, names: Names) -> Any:
        """Call a function of the source by following it, and everything else by asking."""
        function = self.value(node.func, names)
        arguments = self.all_of(node.args, names)
        keywords: dict[str, Any] = {}
        whole = UNKNOWN not in arguments or not any(isinstance(one, ast.Starred) for one in node.args)
        for keyword in node.keywords:
            value = self.value(keyword.value, names)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, dict):
                keywords.update(value)
            else:
                whole = False
        if isinstance(function, Function):
            return self.enter(function, arguments, keywords)
        if isinstance(function, Class):
            return self._make(function, arguments, keywords, whole=whole)
        if function == _DICT and whole and not arguments:
            return keywords
        if not keywords and UNKNOWN not in arguments:
            plain = plain_call(function, arguments)
            if plain is not UNKNOWN:
                return plain
        return self.foreign(function, arguments, keywords, whole=whole)

    def _make(self, made: Class, arguments: list[Any], keywords: dict[str, Any], *, whole: bool) -> Any:
        other = next(
            (self.foreign(Symbol(root), arguments, keywords, whole=whole) for root in made.roots()), UNKNOWN
        )
        if other is not UNKNOWN:
            return other
        instance = Instance(made)
        start = made.find("__init__")
        if isinstance(start, Function):
            self.enter(Function(start.node, start.names, instance), arguments, keywords)
        return instance

    def enter(self, function: Function, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Follow a function of the source with what it is given."""
        node = function.node
        if node in self._stack or len(self._stack) >= _DEEPEST:
            return UNKNOWN
        self.spend(len(function.names))
        inner = dict(function.names)
        given = list(arguments)
        if function.bound is not None and not _is_static(node):
            given.insert(0, function.bound)
        self._fill(node.args, given, keywords, inner)
        self._stack.append(node)
        try:
            return self.body(node.body, inner)
        finally:
            self._stack.pop()

    def _fill(
        self, signature: ast.arguments, given: list[Any], keywords: dict[str, Any], names: Names
    ) -> None:
        positions = [*signature.posonlyargs, *signature.args]
        defaults: list[ast.expr | None] = [
            *[None] * (len(positions) - len(signature.defaults)),
            *signature.defaults,
        ]
        for place, (parameter, default) in enumerate(zip(positions, defaults, strict=True)):
            fallback = self._put_off(default, names)
            names[parameter.arg] = (
                given[place] if place < len(given) else keywords.get(parameter.arg, fallback)
            )
        for parameter, default in zip(signature.kwonlyargs, signature.kw_defaults, strict=True):
            fallback = self._put_off(default, names)
            names[parameter.arg] = keywords.get(parameter.arg, fallback)
        if signature.vararg is not None:
            names[signature.vararg.arg] = given[len(positions) :]
        if signature.kwarg is not None:
            known = {parameter.arg for parameter in (*positions, *signature.kwonlyargs)}
            names[signature.kwarg.arg] = {
                name: value for name, value in keywords.items() if name not in known
            }

    def _put_off(self, default: ast.expr | None, names: Names) -> Any:
        if default is None or self.steps > MOST_STEPS:
            return UNKNOWN
        self.spend(len(names))
        return Lazy(default, dict(names))


def relevant_lines(source: str, interesting: re.Pattern[str]) -> list[int]:
    """Return the sorted numbers of lines that match, and of those that name what such lines are in.

    The time is in proportion to the length of the source: each block is climbed once, and names are found in one pass.
    """
    ends = [match.end() for match in re.finditer("\n", source)]
    blocks = [
        (bisect_left(ends, match.end()) + 1, len(match[1].expandtabs()), match[2])
        for match in _DEF.finditer(source)
    ]
    above = _above([indent for _, indent, _ in blocks])
    starts = [line for line, _, _ in blocks]
    new = {bisect_left(ends, match.start() + 1) + 1 for match in interesting.finditer(source)}
    places = _mentions(source, ends, {name for _, _, name in blocks}) if new else {}
    found: set[int] = set()
    seen: set[int] = set()  # blocks whose names are known
    known = {"__init__"}
    while new:
        found |= new
        names: set[str] = set()
        for line in new:
            place = bisect_left(starts, line + 1) - 1
            while place >= 0 and place not in seen:
                seen.add(place)
                names.add(blocks[place][2])
                place = above[place]
        names -= known
        known |= names
        new = {line for name in names for line in places.get(name, ())} - found
    return sorted(found)


def _mentions(source: str, ends: list[int], names: set[str]) -> dict[str, list[int]]:
    """Return the lines on which each name stands; one pass, whatever the number of names."""
    places: dict[str, list[int]] = {}
    for match in _NAME.finditer(source):
        if match[0] in names:
            places.setdefault(match[0], []).append(bisect_left(ends, match.start() + 1) + 1)
    return places


def _above(indents: list[int]) -> list[int]:
    """Return for each block the one that it stands in, by indentation; -1 for none."""
    above: list[int] = []
    open_: list[int] = []
    for place, indent in enumerate(indents):
        while open_ and indents[open_[-1]] >= indent:
            open_.pop()
        above.append(open_[-1] if open_ else -1)
        open_.append(place)
    return above


def _is_static(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in node.decorator_list)


# By name, so that a subclass's own methods are used.
_STATEMENTS: Final[dict[type, str]] = {
    ast.Assign: "assign", ast.AnnAssign: "assign", ast.AugAssign: "change", ast.For: "loop", ast.AsyncFor: "loop",
    ast.If: "branch", ast.Match: "cases", ast.With: "parts", ast.AsyncWith: "parts", ast.While: "parts",
    ast.Try: "parts", ast.Expr: "expression", ast.Return: "expression", ast.Raise: "expression",
    ast.FunctionDef: "define", ast.AsyncFunctionDef: "define", ast.ClassDef: "define_class", ast.Import: "load",
    ast.ImportFrom: "load",
}  # fmt: skip
