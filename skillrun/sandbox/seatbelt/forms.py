"""Forms: what Seatbelt adds to Scheme: rules, filters, modifiers, parameters, imports."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from skillrun.sandbox.seatbelt.model import Filter, Import, Modifier, Rule
from skillrun.sandbox.seatbelt.procedures import describe, procedures, text
from skillrun.sandbox.seatbelt.scheme import Builtin, Machine, Scope, Text, Word, parts
from skillrun.sandbox.seatbelt.source import Fault, Span
from skillrun.sandbox.seatbelt.syntax import Kind, Node
from skillrun.sandbox.seatbelt.tables import filter_kinds, modifiers, operations, protocols, valued_modifiers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillrun.sandbox.seatbelt.tables import FilterKind

_MOST_RULES: Final = 10_000  # the largest public profile has 3,488 (anthropics/claude-code#73468)
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
                "remote": _network,
                "local": _network,
                "from": _network,
                "to": _network,
                "debug": _nothing,
                "eliminate-duplicate-rules": _nothing,
                "record": _nothing,
                **{name: _worded for name, kind in filter_kinds().items() if kind.takes != "text"},
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

        def filtered(kind: FilterKind) -> Builtin:
            return Builtin(kind.name, lambda values, span: _texts(kind, values, span))

        return {
            "allow": rule(allow=True),
            "deny": rule(allow=False),
            "param": Builtin("param", self._param),
            "getenv": Builtin("getenv", self._param),
            "import": Builtin("import", self._import),
            "trace": Builtin("trace", self._trace),
            "entitlement-value": Builtin("entitlement-value", lambda _, __: Text("")),
            # What <sys/ioccom.h> calls commands of fsctl and ioctl; compared with nothing here.
            **{name: Builtin(name, _command) for name in ("_IO", "_IOR", "_IOW", "_IOWR")},
            "path-ancestors": Builtin("path-ancestors", _ancestors),
            "require-all": Builtin("require-all", lambda v, s: _combined("require-all", v, s)),
            "require-any": Builtin("require-any", lambda v, s: _combined("require-any", v, s)),
            "require-not": Builtin("require-not", lambda v, s: _combined("require-not", v, s)),
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
                return Foreign(name, span)

            return Builtin(name, call)
        return None

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
        filters = tuple(found for value in values if (found := _as_filter(value)) is not None)
        for one in self.around:
            if one.filters and filters:
                own = filters if len(filters) == 1 else (Filter("require-any", span, children=filters),)
                filters = (Filter("require-all", span, children=(*own, *one.filters)),)
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
        found = _as_filter(machine.value(condition, scope))
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


def _as_filter(value: Any) -> Filter | None:
    """Return a filter; one that an import defines is a filter that nobody knows."""
    if isinstance(value, Foreign):
        return Filter("unknown", value.span, (value.name,))
    return value if isinstance(value, Filter) else None


def _command(values: list[Any], _: Span) -> Text:
    """Name a command of fsctl or ioctl."""
    return Text(" ".join(str(value) for value in values if isinstance(value, str | int)))


def _texts(kind: FilterKind, values: list[Any], span: Span) -> Filter:
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


def _worded(machine: Machine, node: Node, scope: Scope) -> Filter:
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


def _network(machine: Machine, node: Node, scope: Scope) -> Filter:
    """Make a filter of an address: a protocol, and `host:port` or the path of a unix socket."""
    name = {"from": "local", "to": "remote"}.get(str(node.items[0].value), str(node.items[0].value))
    first, *others = parts(node, 1)
    protocol = str(first.value) if first.kind is Kind.WORD else ""
    values = [machine.value(item, scope) for item in others]
    if protocol in _UNIX:
        if not all(isinstance(value, Filter) for value in values):
            raise Fault("type-error", "a unix socket is named by a path filter", node.span)
        return Filter(name, node.span, ("unix-socket",), tuple(values))
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


def _ancestors(values: list[Any], span: Span) -> Filter:
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


def _combined(name: str, values: list[Any], span: Span) -> Filter:
    """Combine filters."""
    children = [_as_filter(value) for value in values]
    filters = tuple(child for child in children if child is not None)
    if len(filters) != len(children):
        raise Fault("type-error", f"`{name}` takes filters", span)
    if not filters or (name == "require-not" and len(filters) != 1):
        raise Fault("arity", f"`{name}` is given {len(filters)} filters", span)
    return Filter(name, span, children=filters)


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
