"""Python: what a script does, from its syntax tree. Nothing is imported or run."""

from __future__ import annotations

import ast
import functools
import sys
import warnings
from typing import TYPE_CHECKING, Final

from skillrun.check.static import network
from skillrun.check.static.python_values import SCRATCH, Names, Text
from skillrun.check.static.use import Confidence, Fault, Kind, Reading, Use
from skillrun.resources import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NOT_NODES: Final = frozenset(
    {
        "id",
        "attr",
        "name",
        "ctx",
        "op",
        "ops",
        "kind",
        "arg",
        "type_comment",
        "level",
        "module",
        "is_async",
        "simple",
        "conversion",
    }
)
_CHILDREN: Final = {
    cls: tuple(field for field in cls._fields if field not in _NOT_NODES)
    for cls in vars(ast).values()
    if isinstance(cls, type) and issubclass(cls, ast.AST)
}
_CHILDREN.update(
    {
        ast.Constant: (),
        ast.Name: (),
        ast.alias: (),
        ast.Import: (),
        ast.ImportFrom: (),
        ast.Attribute: ("value",),
    }
)


def read(source: bytes, *, file: str) -> Reading:
    """Read a Python script. `file` is its path in the spelling of a request, such as `${skill}/scripts/run.py`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # what the compiler thinks of a stranger's style is nobody's concern
            tree = ast.parse(source)
    except SyntaxError as wrong:
        version = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
        # Python 3.12 allows more inside an f-string; what else a newer one allows can't be told from an error.
        newer = sys.version_info < (3, 12) and "f-string" in wrong.msg
        said = f"{version} can't parse it: {wrong.msg}" + (", which Python 3.12 may take" if newer else "")
        return Reading("python", fault=Fault(said, wrong.lineno, wrong.offset or None, newer=newer))
    except (ValueError, RecursionError, MemoryError, OverflowError) as wrong:
        return Reading("python", fault=Fault(f"it can't be parsed: {type(wrong).__name__}"))
    try:
        found = _File(file)
        uses = tuple(found.read(tree))
    except RecursionError:
        return Reading("python", fault=Fault("it is nested too deeply to be read"))
    return Reading("python", uses, foreign=found.foreign)


class _File:
    """One file: its names first, since a name can be used above the line that gives it, then its calls."""

    def __init__(self, file: str) -> None:
        self.names = Names(file)
        self.calls: list[ast.Call] = []
        self.subscripts: list[ast.Subscript] = []
        self.imported: list[tuple[str, ast.stmt]] = []

    def read(self, tree: ast.Module) -> Iterator[Use]:
        self.gather(tree)
        connected = False
        moved = any(self.names.dotted(call.func) == "os.chdir" for call in self.calls)
        for call in self.calls:
            for use in self.call(call):
                if (
                    moved
                    and use.kind in {Kind.READ, Kind.WRITE}
                    and not str(use.value).startswith(("/", "~", "$"))
                ):
                    continue  # where it stands then is not known
                connected = connected or use.kind is Kind.NETWORK
                yield use
        for subscript in self.subscripts:
            if self.names.dotted(subscript.value) == "os.environ":
                yield from self.variable(subscript, subscript.slice, "os.environ")
        if not connected:
            yield from self.imports()

    @property
    def foreign(self) -> bool:
        return any(name.split(".")[0] not in _own_modules() for name, _ in self.imported)

    def gather(self, tree: ast.Module) -> None:
        """Walk the tree once. Not `ast.walk`: that takes several times as long as the parsing did."""
        stack: list[ast.AST] = [tree]
        pop, push, plain = stack.pop, stack.append, _PLAIN
        while stack:
            node = pop()
            cls = node.__class__
            if cls is ast.Call:
                self.calls.append(node)  # type: ignore[arg-type]  # told by its class, which is faster than isinstance
            elif cls in _BINDERS:
                self.bind(node)
            for field in _CHILDREN[cls]:
                value = getattr(node, field)
                if value.__class__ is not list:
                    if value.__class__ not in plain:
                        push(value)
                elif value:
                    stack += [inner for inner in value if inner.__class__ not in plain]
        # Reported in the order of the file.
        self.calls.sort(key=_position)
        self.subscripts.sort(key=_position)

    def bind(self, node: ast.AST) -> None:
        """Note what a statement gives a name to."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.imports_of(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self.target(target, node.value if len(node.targets) == 1 else None)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            self.target(node.target, node.value)
        elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor | ast.comprehension):
            self.target(node.target, None)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self.target(node.optional_vars, None)
        elif isinstance(node, ast.arg):
            self.names.assign(node.arg, None)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.names.assign(node.name, None)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            self.subscripts.append(node)

    def imports_of(self, node: ast.Import | ast.ImportFrom) -> None:
        """Note what an import gives a name to; a relative one brings in the skill's own."""
        names = self.names.imports
        for alias in node.names:
            if isinstance(node, ast.Import):
                self.imported.append((alias.name, node))
                first = alias.name.split(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
            elif node.module and not node.level:
                self.imported.append((f"{node.module}.{alias.name}", node))
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def target(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.names.assign(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            for inner in target.elts:
                self.target(inner, None)
        elif isinstance(target, ast.Starred):
            self.target(target.value, None)

    def imports(self) -> Iterator[Use]:
        """Give what is imported and is there to connect: a hint, where no call was seen."""
        for name, node in self.imported:
            if network.is_call(name) or network.is_call(f"{name}.x"):
                yield Use(
                    Kind.NETWORK, None, node.lineno, node.col_offset + 1, f"import {name}", Confidence.MEDIUM
                )
                return

    def call(self, node: ast.Call) -> Iterator[Use]:
        name = self.names.dotted(node.func)
        kind = _calls().get(name) if name is not None else None
        if kind is not None and name is not None:
            yield from kind(self, node, name)
        elif name is not None and network.is_call(name):
            yield from self.connection(node, name)
        elif isinstance(node.func, ast.Attribute):
            yield from self.method(node, node.func)

    def open_call(self, node: ast.Call, name: str) -> Iterator[Use]:
        return self.opened(node, node.args[0] if node.args else None, node.args[1:2], name)

    def read_call(self, node: ast.Call, name: str) -> Iterator[Use]:
        return self.paths(Kind.READ, node, node.args[:1], name)

    def write_call(self, node: ast.Call, name: str) -> Iterator[Use]:
        return self.paths(Kind.WRITE, node, node.args[:1], name)

    def copy_call(self, node: ast.Call, name: str) -> Iterator[Use]:
        yield from self.paths(Kind.READ, node, node.args[:1], name)
        yield from self.paths(Kind.WRITE, node, node.args[1:2], name)

    def move_call(self, node: ast.Call, name: str) -> Iterator[Use]:
        return self.paths(Kind.WRITE, node, node.args[:2], name)

    def start_call(self, node: ast.Call, name: str) -> Iterator[Use]:
        return self.started(node, node.args[0] if node.args else None, name)

    def spread_call(self, node: ast.Call, name: str) -> Iterator[Use]:
        return self.program(node, node.args, name)

    def variable_call(self, node: ast.Call, name: str) -> Iterator[Use]:
        return self.variable(node, node.args[0], name) if node.args else iter(())

    def method(self, node: ast.Call, func: ast.Attribute) -> Iterator[Use]:
        """Understand a method of a path whose text is known, and savers that name their file."""
        attr = func.attr
        kind = _methods().get(attr)
        if kind is not None:
            yield from self.path(kind, node, func.value, attr)
        elif attr == "open":
            yield from self.opened(node, func.value, node.args[:1], attr)
        elif attr in _savers():
            yield from self.paths(Kind.WRITE, node, node.args[:1], attr, Confidence.MEDIUM)

    def opened(self, node: ast.Call, path: ast.expr | None, mode: list[ast.expr], what: str) -> Iterator[Use]:
        said = next((word.value for word in node.keywords if word.arg == "mode"), mode[0] if mode else None)
        word = (
            said.value
            if isinstance(said, ast.Constant) and isinstance(said.value, str)
            else "r"
            if said is None
            else None
        )
        if word is not None and path is not None:
            kind = Kind.WRITE if set("wax+") & set(word) else Kind.READ
            yield from self.path(kind, node, path, what)

    def paths(
        self,
        kind: Kind,
        node: ast.Call,
        found: list[ast.expr],
        what: str,
        confidence: Confidence = Confidence.HIGH,
    ) -> Iterator[Use]:
        for path in found:
            yield from self.path(kind, node, path, what, confidence)

    def path(
        self, kind: Kind, node: ast.Call, path: ast.expr, what: str, confidence: Confidence = Confidence.HIGH
    ) -> Iterator[Use]:
        text = self.names.text(path)
        if text is None or "://" in text.known or not text.known.strip() or text.known.startswith(SCRATCH):
            return
        if "\n" in text.known or text.known in {"-", ":memory:"} or text.known.startswith("file:"):
            return
        yield self.use(kind, node, text, what, confidence)

    def variable(self, node: ast.expr, name: ast.expr, what: str) -> Iterator[Use]:
        text = self.names.text(name)
        if text is not None and text.exact and text.known.isidentifier():
            yield self.use(Kind.ENV, node, text, what)

    def started(self, node: ast.Call, command: ast.expr | None, what: str) -> Iterator[Use]:
        if isinstance(command, ast.Name):
            command = self.names.values.get(command.id) or command
        if isinstance(command, ast.List | ast.Tuple):
            yield from self.program(node, command.elts, what)
        elif isinstance(command, ast.BinOp) and isinstance(command.left, ast.List):
            yield from self.program(node, command.left.elts, what)
        elif (text := self.names.text(command)) is not None:
            from skillrun.check.static import shell  # noqa: PLC0415 - a script in a script: each reads the other

            inner = shell.read(text.known if text.exact else f"{text.known}…", embedded=True)
            for use in inner.uses:
                yield Use(
                    use.kind,
                    use.value,
                    node.lineno,
                    node.col_offset + 1,
                    f"{what}: {use.what}",
                    Confidence.MEDIUM,
                    use.exact,
                )

    def program(self, node: ast.Call, words: list[ast.expr], what: str) -> Iterator[Use]:
        line = [
            text.known if (text := self.names.text(word)) is not None and text.exact else None
            for word in words
        ]
        if line[:1] in ([], [None]):
            return
        first = str(line[0])
        program = first.rpartition("/")[2]
        if not program or first.startswith((".", "$", "~")):
            return
        yield self.use(Kind.PROGRAM, node, Text(program), what)
        if network.is_program(line):
            hosts = (network.host_in(word) for word in line if word is not None)
            host = next((host for host in hosts if host is not None), None)
            told = " ".join(word for word in line[:2] if word is not None)
            yield Use(Kind.NETWORK, host, node.lineno, node.col_offset + 1, told, Confidence.HIGH)

    def connection(self, node: ast.Call, name: str) -> Iterator[Use]:
        if name.startswith("socket.") and any(_is_local(argument) for argument in node.args):
            return
        arguments = (
            *node.args[:2],
            *(word.value for word in node.keywords if word.arg in {"url", "base_url"}),
        )
        texts = (self.names.text(argument) for argument in arguments)
        hosts = (network.host_in(text.known, whole=text.exact) for text in texts if text is not None)
        host = next((host for host in hosts if host is not None), None)
        yield Use(Kind.NETWORK, host, node.lineno, node.col_offset + 1, name)

    def use(
        self, kind: Kind, node: ast.expr, text: Text, what: str, confidence: Confidence = Confidence.HIGH
    ) -> Use:
        return Use(kind, text.known, node.lineno, node.col_offset + 1, what, confidence, text.exact)


_PLAIN: Final = frozenset(
    {
        str,
        int,
        float,
        bool,
        bytes,
        complex,
        type(None),
        type(...),
        ast.Load,
        ast.Store,
        ast.Del,
        ast.Name,
        ast.Constant,
    }
)
_BINDERS: Final = frozenset({
    ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign, ast.For, ast.AsyncFor,
    ast.comprehension, ast.withitem, ast.arg, ast.Subscript, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
})  # fmt: skip


def _position(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _is_local(argument: ast.expr) -> bool:
    """Whether an argument of a socket says that it stays on this machine."""
    return isinstance(argument, ast.Attribute) and argument.attr in {"AF_UNIX", "AF_NETLINK", "AF_PACKET"}


@functools.cache
def _calls() -> dict[str, Callable[[_File, ast.Call, str], Iterator[Use]]]:
    """Return what to do with each call that is known by name."""
    readers: dict[str, Callable[[_File, ast.Call, str], Iterator[Use]]] = {
        "opens": _File.open_call,
        "reads": _File.read_call,
        "writes": _File.write_call,
        "copies": _File.copy_call,
        "moves": _File.move_call,
        "starts": _File.start_call,
        "spreads": _File.spread_call,
        "variables": _File.variable_call,
    }
    known = table("check/python")["calls"]
    return {name: reader for kind, reader in readers.items() for name in known[kind]["names"]}


@functools.cache
def _methods() -> dict[str, Kind]:
    known = table("check/python")["methods"]
    return {
        name: kind
        for key, kind in (("reads", Kind.READ), ("writes", Kind.WRITE))
        for name in known[key]["names"]
    }


@functools.cache
def _savers() -> frozenset[str]:
    return frozenset(table("check/python")["methods"]["saves"]["names"])


@functools.cache
def _own_modules() -> frozenset[str]:
    return frozenset(sys.stdlib_module_names) | frozenset(table("check/python")["quiet_modules"]["names"])
