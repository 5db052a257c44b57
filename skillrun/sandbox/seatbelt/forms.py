"""Forms: what Seatbelt adds to Scheme: rules, filters, modifiers, parameters, imports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from skillrun.sandbox.seatbelt.filters import (
    Foreign,
    Operation,
    ancestors,
    as_filter,
    combined,
    compound,
    network,
    texts,
    worded,
)
from skillrun.sandbox.seatbelt.model import Doubt, Filter, Import, Modifier, Rule
from skillrun.sandbox.seatbelt.procedures import describe, procedures, text
from skillrun.sandbox.seatbelt.scheme import Builtin, Closure, Machine, Scope, Text, parts
from skillrun.sandbox.seatbelt.source import Fault, Span
from skillrun.sandbox.seatbelt.syntax import Kind, Node
from skillrun.sandbox.seatbelt.tables import filter_kinds, modifiers, operations, valued_modifiers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillrun.sandbox.seatbelt.tables import FilterKind

_MOST_RULES: Final = 10_000  # the largest public profile has 3,488 (anthropics/claude-code#73468)
_CONDITIONS: Final = frozenset({"if", "when", "unless", "cond", "case", "and", "or", "not"})


@dataclass(slots=True)
class Around:
    """What `with-filter`, `with-modifier` and `with-operations` add to the rules in them."""

    filters: tuple[Filter, ...] = ()
    modifiers: tuple[Modifier, ...] = ()
    operations: tuple[Operation, ...] = ()


@dataclass(slots=True)
class Builder:
    """Collects what a profile says while it is evaluated."""

    values: Mapping[str, str]
    version: bool = False
    rules: list[Rule] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    parameters: dict[str, Span] = field(default_factory=dict)
    around: list[Around] = field(default_factory=list)
    traced: bool = False
    doubts: list[Doubt] = field(default_factory=list)
    _called: list[str] = field(default_factory=list)

    def machine(self) -> Machine:
        """Return what evaluates the profile."""
        machine = Machine(
            {
                "version": self._version,
                "allow": self._rule,
                "deny": self._rule,
                "with": _with,
                "with-filter": self._with_filter,
                "with-modifier": self._with_modifier,
                "with-operations": self._with_operations,
                "remote": network,
                "local": network,
                "from": network,
                "to": network,
                "debug": _nothing,
                "eliminate-duplicate-rules": _nothing,
                "record": _nothing,
                **{name: worded for name, kind in filter_kinds().items() if kind.takes != "text"},
            },
            self._meaning,
        )
        names = {**procedures(machine), **self._own_procedures(machine)}
        machine.top.names.update(
            {name: value for name, value in names.items() if name not in {"allow", "deny"}}
        )
        self._as_values = {name: names[name] for name in ("allow", "deny")}
        return machine

    _as_values: dict[str, Builtin] = field(default_factory=dict)

    def _own_procedures(self, machine: Machine) -> dict[str, Builtin]:
        def rule(allow: bool) -> Builtin:  # noqa: FBT001 - which of the two
            return Builtin(
                "allow" if allow else "deny",
                lambda values, span: self._add(machine, values, span, allow=allow),
            )

        def entitlement(_: list[Any], __: Span) -> Text:
            machine.unsure.append("it asks for an entitlement, which stands in a program's signature")
            return Text("")

        def filtered(kind: FilterKind) -> Builtin:
            return Builtin(kind.name, lambda values, span: texts(kind, values, span))

        return {
            "allow": rule(allow=True),
            "deny": rule(allow=False),
            "param": Builtin("param", self._param),
            "getenv": Builtin("getenv", self._param),
            "import": Builtin("import", self._import),
            "trace": Builtin("trace", self._trace),
            "entitlement-value": Builtin("entitlement-value", entitlement),
            # What <sys/ioccom.h> calls commands of fsctl and ioctl; compared with nothing here.
            **{name: Builtin(name, _command) for name in ("_IO", "_IOR", "_IOW", "_IOWR")},
            "path-ancestors": Builtin("path-ancestors", ancestors),
            "require-all": Builtin("require-all", lambda v, s: combined("require-all", v, s)),
            "require-any": Builtin("require-any", lambda v, s: combined("require-any", v, s)),
            "require-not": Builtin("require-not", lambda v, s: combined("require-not", v, s)),
            **{name: filtered(kind) for name, kind in filter_kinds().items() if kind.takes == "text"},
        }

    def _meaning(self, name: str) -> Any:
        """Say what a name means that the profile did not define; None for nothing."""
        if name in self._as_values:
            return self._as_values[name]
        if operations().known(name):
            return Operation(name)
        if self.imports:
            # A name that an import may define: what it does is unknown, and it may add rules.
            def call(_: list[Any], span: Span) -> Foreign:
                self.imports.append(Import(len(self.rules), name, span))
                self._called.append(name)
                return Foreign(name, span)

            return Builtin(name, call, foreign=True)
        return None

    def doubt(self, machine: Machine, node: Node) -> None:
        """Note what a form depends on that no text tells, and the operations that it can be about."""
        called = [f"it asks `{name}`, which an import defines" for name in self._called]
        self._called.clear()
        if not machine.unsure and not called:
            return
        named: set[str] = set()
        asks = False
        everything = node.items[:1] != () and node.items[0].value in {"define", "define-once", "set!"}
        pending = [node]
        while pending:
            one = pending.pop()
            pending += one.items
            word = str(one.value) if one.kind is Kind.WORD else ""
            asks = asks or word in _CONDITIONS
            if isinstance(machine.top.names.get(word), Closure):
                everything = True  # a helper may be about anything
            elif operations().known(word):
                named.add(operations().aliases.get(word, word))
        about = None if everything else frozenset(named)
        reasons = machine.unsure + (called if asks or everything else [])
        self.doubts += [Doubt(about, reason) for reason in dict.fromkeys(reasons)]
        machine.unsure.clear()

    def _version(self, machine: Machine, node: Node, scope: Scope) -> None:
        (number,) = (machine.value(item, scope) for item in parts(node, 1, 1))
        if isinstance(number, bool) or number != 1:
            raise Fault("unsupported-version", "only version 1 of the language is supported", node.span)
        self.version = True

    def _rule(self, machine: Machine, node: Node, scope: Scope) -> None:
        """Make a rule as it is written; names that mean nothing are told apart by where they stand."""
        values = []
        for item in node.items[1:]:
            head = item.items[0] if item.items else item
            if head.kind is Kind.WORD and not machine.defined(str(head.value), scope):
                what = "operation" if item is head else "filter"
                raise Fault(f"unknown-{what}", f"there is no {what} `{head.value}`", head.span)
            values.append(machine.value(item, scope))
        self._add(machine, values, node.span, allow=node.items[0].value == "allow")

    def _add(self, machine: Machine, values: Sequence[Any], span: Span, *, allow: bool) -> None:
        """Add a rule made of operations, filters and modifiers in any order."""
        if not self.version:
            raise Fault("no-version", "no version specified: `(version 1)` comes before any rule", span)
        if len(self.rules) >= _MOST_RULES:
            raise Fault("too-large", f"more than {_MOST_RULES} rules", span)
        for value in values:
            if not isinstance(value, Operation | Filter | Modifier | Foreign):
                message = f"a rule takes operations, filters and modifiers, not {describe(value)}"
                raise Fault("type-error", message, span)
        named = [value.name for value in values if isinstance(value, Operation)]
        named += [operation.name for one in self.around for operation in one.operations]
        if not named:
            raise Fault("no-operation", "a rule without an operation", span)
        known = operations()
        origin = machine.origin
        if known.without_effect.isdisjoint(named):
            self.rules.append(
                Rule(
                    index=len(self.rules),
                    allow=allow,
                    operations=tuple(known.aliases.get(name, name) for name in named),
                    written=tuple(named),
                    filters=self._filters(values, span),
                    modifiers=self._modifiers(values, allow=allow),
                    span=span if origin is None else origin,
                    made=span,
                )
            )

    def _filters(self, values: Sequence[Any], span: Span) -> tuple[Filter, ...]:
        """Give a rule's filters; `with-filter` makes each rule in it need its own filter as well."""
        filters = tuple(found for value in values if (found := as_filter(value)) is not None)
        for one in self.around:
            if one.filters and filters:
                own = filters if len(filters) == 1 else (compound("require-any", filters, span),)
                filters = (compound("require-all", (*own, *one.filters), span),)
            filters = filters or one.filters
        return filters

    def _modifiers(self, values: Sequence[Any], *, allow: bool) -> tuple[Modifier, ...]:
        """Give a rule's modifiers. Raises Fault for one that belongs to the other decision."""
        found = [value for value in values if isinstance(value, Modifier)]
        found += [modifier for one in self.around for modifier in one.modifiers]
        for modifier in found:
            belongs = modifiers()[modifier.name]
            if belongs not in {"both", "allow" if allow else "deny"}:
                message = f"`{modifier.name}` belongs to `{belongs}` only"
                raise Fault("bad-modifier", message, modifier.span)
        return tuple(found)

    def _param(self, values: list[Any], span: Span) -> Any:
        name = text(values[0], span) if len(values) == 1 else None
        if name is None:
            raise Fault("arity", "`param` takes one name", span)
        self.parameters.setdefault(name, span)
        value = self.values.get(name)
        return False if value is None else Text(value, parameters=(str(name),), raw=True)

    def _import(self, values: list[Any], span: Span) -> None:
        if len(values) != 1:
            raise Fault("arity", "`import` takes one file", span)
        self.imports.append(Import(len(self.rules), str(text(values[0], span)), span))

    def _trace(self, values: list[Any], span: Span) -> None:
        if len(values) != 1 or self.traced:
            raise Fault("arity", "`trace` takes one file, once", span)
        text(values[0], span)
        self.traced = True

    def _with_filter(self, machine: Machine, node: Node, scope: Scope) -> Any:
        condition, *body = parts(node, 1)
        found = as_filter(machine.value(condition, scope))
        if found is None:
            raise Fault("type-error", "`with-filter` takes a filter first", condition.span)
        return self._inside(Around(filters=(found,)), machine, body, scope)

    def _with_modifier(self, machine: Machine, node: Node, scope: Scope) -> Any:
        first, *body = parts(node, 1)
        found = (
            machine.value(first, scope) if first.kind is Kind.LIST else _modifier(first, (), machine, scope)
        )
        if not isinstance(found, Modifier):
            raise Fault("type-error", "`with-modifier` takes a modifier first", first.span)
        return self._inside(Around(modifiers=(found,)), machine, body, scope)

    def _with_operations(self, machine: Machine, node: Node, scope: Scope) -> Any:
        first, *body = parts(node, 1)
        found = machine.value(first, scope)
        if not isinstance(found, list) or not all(isinstance(one, Operation) for one in found):
            raise Fault("type-error", "`with-operations` takes a list of operations first", first.span)
        return self._inside(Around(operations=tuple(found)), machine, body, scope)

    def _inside(self, around: Around, machine: Machine, body: Sequence[Node], scope: Scope) -> Any:
        self.around.append(around)
        try:
            return machine.body(body, scope)
        finally:
            self.around.pop()


def _nothing(_: Machine, __: Node, ___: Scope) -> None:
    """Do nothing: `debug` and its like decide nothing."""


def _command(values: list[Any], _: Span) -> Text:
    """Name a command of fsctl or ioctl."""
    return Text(" ".join(str(value) for value in values if isinstance(value, str | int)))


def _with(machine: Machine, node: Node, scope: Scope) -> Modifier:
    """Make a modifier."""
    first, *others = parts(node, 1)
    return _modifier(first, others, machine, scope)


def _modifier(first: Node, others: Sequence[Node], machine: Machine, scope: Scope) -> Modifier:
    name = str(first.value) if first.kind is Kind.WORD else ""
    if name not in modifiers():
        raise Fault("unknown-modifier", f"there is no modifier `{name or 'of this kind'}`", first.span)
    takes = 1 if name in valued_modifiers() else 0
    if len(others) != takes:
        raise Fault("arity", f"the modifier `{name}` is written wrongly", first.span)
    value: Any = None
    for item in others:
        bare = item.kind is Kind.WORD and not machine.defined(str(item.value), scope)
        value = str(item.value) if bare else machine.value(item, scope)
        if not isinstance(value, str | int):
            raise Fault("type-error", f"the modifier `{name}` is given {describe(value)}", item.span)
    canonical = {"no-log": "no-report", "no-profile": "no-sandbox"}.get(name, name)
    return Modifier(canonical, first.span, value)
