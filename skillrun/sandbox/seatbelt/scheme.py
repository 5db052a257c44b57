"""Scheme: the part of the language that computes. `forms` holds what is Seatbelt's own.

Evaluation is bounded in steps, depth and the size of values, and reaches no file, clock or variable of this process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from skillrun.sandbox.seatbelt.source import Fault, Span
from skillrun.sandbox.seatbelt.syntax import Kind, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOST_STEPS: Final = 200_000  # evaluations of one profile; a large one takes about 20,000
_MOST_DEPTH: Final = 120  # evaluations inside one another: below Python's own limit, whoever calls
_COPIED: Final = 64  # characters or items that are copied in the time of one step
_NOTHING: Final = object()
_PAIR: Final = 2


class Text(str):
    """A string of the language. `parameters` went into it.

    A `raw` one is a parameter's own value; one is `spliced` when a raw one was put together with others.
    """

    __slots__ = ("parameters", "raw", "spliced")
    parameters: tuple[str, ...]
    raw: bool
    spliced: bool

    def __new__(  # noqa: PYI034 - Self came with Python 3.11
        cls, value: str, *, parameters: tuple[str, ...] = (), raw: bool = False, spliced: bool = False
    ) -> Text:
        """Make a string, with what went into it."""
        made = super().__new__(cls, value)
        made.parameters, made.raw, made.spliced = parameters, raw, spliced
        return made


@dataclass(frozen=True, slots=True)
class Word:
    """A quoted symbol."""

    name: str


@dataclass(frozen=True, slots=True)
class Quoted:
    """A quoted value that is neither a word nor a list; nothing takes one."""

    value: Any


@dataclass(frozen=True, slots=True)
class Closure:
    """A procedure of the profile."""

    names: tuple[str, ...]
    rest: str | None
    body: tuple[Node, ...]
    scope: Scope


@dataclass(frozen=True, slots=True)
class Builtin:
    """A procedure of the language: takes values and the place of the call."""

    name: str
    call: Callable[[list[Any], Span], Any]
    foreign: bool = False
    """Whether only an imported profile can say what it is."""


@dataclass(slots=True)
class Scope:
    """Names and their values, and the scope around."""

    names: dict[str, Any] = field(default_factory=dict)
    above: Scope | None = None

    def find(self, name: str) -> Any:
        """Return a value, `_NOTHING` when there is none."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.above
        return _NOTHING


class Special(Protocol):
    """A form that decides itself which of its parts are evaluated."""

    def __call__(self, machine: Machine, node: Node, scope: Scope, /) -> Any:
        """Evaluate the form."""


class Machine:
    """Evaluates forms. `specials` are forms that do not evaluate all their parts, by name."""

    def __init__(self, specials: dict[str, Special], lookup: Callable[[str], Any]) -> None:
        self.specials = {**_SPECIALS, **specials}
        self.top = Scope()
        self._lookup = lookup
        self._steps = 0
        self._depth = 0
        self.calls: list[Span] = []
        self.unsure: list[str] = []
        """What was asked that a text can't answer; whoever evaluates a form takes it from here."""

    @property
    def origin(self) -> Span | None:
        """The outermost call of a procedure of the profile that is under way."""
        return self.calls[0] if self.calls else None

    def defined(self, name: str, scope: Scope) -> bool:
        """Tell whether a name means anything."""
        return self.surely_defined(name, scope) or self._lookup(name) is not None

    def surely_defined(self, name: str, scope: Scope) -> bool:
        """Tell whether a name means anything here, whatever an import defines."""
        if name in self.specials or scope.find(name) is not _NOTHING:
            return True
        meaning = self._lookup(name)
        return meaning is not None and not (isinstance(meaning, Builtin) and meaning.foreign)

    def value(self, node: Node, scope: Scope) -> Any:  # noqa: PLR0911 - one kind of node a line
        """Evaluate one form."""
        if node.kind is Kind.TEXT:
            return Text(str(node.value))
        if node.kind in {Kind.NUMBER, Kind.TRUTH}:
            return node.value
        if node.kind is Kind.QUOTE:
            return datum(node.items[0], quoted=True)
        if node.kind is Kind.WORD:
            return self._word(str(node.value), node.span, scope)
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise Fault("too-long", "evaluating it takes more steps than any real profile", node.span)
        if self._depth >= _MOST_DEPTH:
            raise Fault("too-deep", "calls nest too deeply", node.span)
        if not node.items:
            return []
        head = node.items[0]
        self._depth += 1
        try:
            if head.kind is Kind.WORD and scope.find(str(head.value)) is _NOTHING:
                special = self.specials.get(str(head.value))
                if special is not None:
                    return special(self, node, scope)
            procedure = self.value(head, scope)
            arguments = [self.value(item, scope) for item in node.items[1:]]
            return self.apply(procedure, arguments, node.span)
        finally:
            self._depth -= 1

    def apply(self, procedure: Any, arguments: list[Any], span: Span) -> Any:
        """Call a procedure. Long texts and lists cost more steps than one, or copying them would cost nothing."""
        self._steps += 1 + sum(len(one) for one in arguments if isinstance(one, str | list)) // _COPIED
        if self._steps > _MOST_STEPS:
            raise Fault("too-long", "evaluating it takes more steps than any real profile", span)
        if isinstance(procedure, Builtin):
            return procedure.call(arguments, span)
        if not isinstance(procedure, Closure):
            raise Fault("type-error", "something is called that is no procedure", span)
        given, named = len(arguments), len(procedure.names)
        if given < named or (given > named and procedure.rest is None):
            raise Fault("arity", f"a procedure of {named} arguments is called with {given}", span)
        names = dict(zip(procedure.names, arguments, strict=False))
        if procedure.rest is not None:
            names[procedure.rest] = arguments[named:]
        if self._depth >= _MOST_DEPTH:
            raise Fault("too-deep", "calls nest too deeply, or never end", span)
        self._depth += 1
        self.calls.append(span)
        try:
            return self.body(procedure.body, Scope(names, procedure.scope))
        finally:
            self.calls.pop()
            self._depth -= 1

    def body(self, nodes: Sequence[Node], scope: Scope) -> Any:
        """Evaluate forms one after another and return the last one's value."""
        result: Any = None
        for node in nodes:
            result = self.value(node, scope)
        return result

    def _word(self, name: str, span: Span, scope: Scope) -> Any:
        found = scope.find(name)
        if found is _NOTHING:
            found = self._lookup(name)
        if found is None and name not in scope.names:
            raise Fault("unbound", f"`{name}` means nothing: unbound variable", span)
        return found


def datum(node: Node, *, quoted: bool = False) -> Any:
    """Return a form as data."""
    if node.kind is Kind.LIST:
        return [datum(item) for item in node.items]
    if node.kind is Kind.QUOTE:
        return [Word("quote"), datum(node.items[0])]
    if node.kind is Kind.WORD:
        return Word(str(node.value))
    value = Text(str(node.value)) if node.kind is Kind.TEXT else node.value
    return Quoted(value) if quoted else value


def true(value: Any) -> bool:
    """Tell whether a value counts as true: all but `#f`, also an empty string and 0."""
    return value is not False


def parts(node: Node, least: int, most: int | None = None) -> tuple[Node, ...]:
    """Return what stands behind the first word. Raises Fault when it is too little or too much."""
    found = node.items[1:]
    if len(found) < least or (most is not None and len(found) > most):
        raise Fault("arity", f"`{node.items[0].value}` is written wrongly", node.span)
    return found


def _name(node: Node) -> str:
    if node.kind is not Kind.WORD:
        raise Fault("type-error", "a name is expected here", node.span)
    return str(node.value)


def _parameters(nodes: Sequence[Node]) -> tuple[tuple[str, ...], str | None]:
    names = [_name(node) for node in nodes]
    if "." in names:
        place = names.index(".")
        if place != len(names) - 2:
            raise Fault("type-error", "a dot stands before the last name", nodes[place].span)
        return tuple(names[:place]), names[-1]
    return tuple(names), None


def _lambda(_: Machine, node: Node, scope: Scope) -> Closure:
    head, *body = parts(node, 2)
    if head.kind is Kind.WORD:
        return Closure((), _name(head), tuple(body), scope)
    names, rest = _parameters(head.items)
    return Closure(names, rest, tuple(body), scope)


def _define(machine: Machine, node: Node, scope: Scope) -> None:
    head, *body = parts(node, 1)
    if head.kind is Kind.LIST and head.items:
        names, rest = _parameters(head.items[1:])
        scope.names[_name(head.items[0])] = Closure(names, rest, tuple(body), scope)
        return
    name = _name(head)
    once = node.items[0].value == "define-once" and scope.find(name) is not _NOTHING
    if not once:
        scope.names[name] = machine.body(body, scope)


def _set(machine: Machine, node: Node, scope: Scope) -> None:
    head, value = parts(node, 2, 2)
    place: Scope | None = scope
    while place is not None and _name(head) not in place.names:
        place = place.above
    if place is None:
        raise Fault("unbound", f"`{head.value}` means nothing: unbound variable", head.span)
    place.names[_name(head)] = machine.value(value, scope)


def _let(machine: Machine, node: Node, scope: Scope) -> Any:
    head, *body = parts(node, 1)
    named = None
    if head.kind is Kind.WORD and body:
        named, head, *body = _name(head), *body
    kind = str(node.items[0].value)
    inner = Scope({}, scope)
    names = []
    for pair in head.items:
        if pair.kind is not Kind.LIST or len(pair.items) != _PAIR:
            raise Fault("type-error", "`let` takes pairs of a name and a value", pair.span)
        names.append(_name(pair.items[0]))
        inner.names[names[-1]] = machine.value(pair.items[1], scope if kind == "let" else inner)
    if named is not None:
        inner.names[named] = Closure(tuple(names), None, tuple(body), inner)
    return machine.body(body, inner)


def _if(machine: Machine, node: Node, scope: Scope) -> Any:
    condition, *branches = parts(node, 2, 3)
    if true(machine.value(condition, scope)):
        return machine.value(branches[0], scope)
    return machine.value(branches[1], scope) if len(branches) > 1 else None


def _when(machine: Machine, node: Node, scope: Scope) -> Any:
    condition, *body = parts(node, 1)
    wanted = node.items[0].value == "when"
    return machine.body(body, scope) if true(machine.value(condition, scope)) is wanted else None


def _cond(machine: Machine, node: Node, scope: Scope) -> Any:
    for clause in parts(node, 0):
        if clause.kind is not Kind.LIST or not clause.items:
            raise Fault("type-error", "`cond` takes clauses", clause.span)
        first, *body = clause.items
        otherwise = first.kind is Kind.WORD and first.value == "else"
        found = True if otherwise else machine.value(first, scope)
        if true(found):
            return machine.body(body, scope) if body else found
    return None


def _case(machine: Machine, node: Node, scope: Scope) -> Any:
    key, *clauses = parts(node, 1)
    value = machine.value(key, scope)
    for clause in clauses:
        if clause.kind is not Kind.LIST or not clause.items:
            raise Fault("type-error", "`case` takes clauses", clause.span)
        first, *body = clause.items
        otherwise = first.kind is Kind.WORD and first.value == "else"
        if otherwise or value in [datum(item) for item in first.items]:
            return machine.body(body, scope)
    return None


def _begin(machine: Machine, node: Node, scope: Scope) -> Any:
    return machine.body(node.items[1:], scope)


def _and(machine: Machine, node: Node, scope: Scope) -> Any:
    value: Any = True
    for item in node.items[1:]:
        value = machine.value(item, scope)
        if not true(value):
            return False
    return value


def _or(machine: Machine, node: Node, scope: Scope) -> Any:
    for item in node.items[1:]:
        value = machine.value(item, scope)
        if true(value):
            return value
    return False


def _quote(_: Machine, node: Node, __: Scope) -> Any:
    return datum(parts(node, 1, 1)[0], quoted=True)


def _is_defined(machine: Machine, node: Node, scope: Scope) -> bool:
    (item,) = parts(node, 1, 1)
    name = machine.value(item, scope) if item.kind is not Kind.WORD else Word(str(item.value))
    text = name.name if isinstance(name, Word) else str(name)
    if not machine.surely_defined(text, scope):  # a newer release may have it, or an import
        machine.unsure.append(f"it asks whether there is a `{text}`, which depends on the release")
    return machine.defined(text, scope)


_SPECIALS: Final[dict[str, Special]] = {
    "define": _define,
    "define-once": _define,
    "set!": _set,
    "lambda": _lambda,
    "let": _let,
    "let*": _let,
    "letrec": _let,
    "if": _if,
    "when": _when,
    "unless": _when,
    "cond": _cond,
    "case": _case,
    "begin": _begin,
    "and": _and,
    "or": _or,
    "quote": _quote,
    "defined?": _is_defined,
}
