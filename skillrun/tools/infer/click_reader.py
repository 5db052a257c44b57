"""Click and typer: the commands of a Python script, read from decorators and signatures."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.infer.argparse_option import property_name
from skillrun.tools.infer.follow import Class, Follower, Function
from skillrun.tools.infer.values import UNKNOWN, Symbol
from skillrun.tools.interface import MOST_INTERFACES, MOST_OPTIONS, Form, Grammar, Interface, Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERESTING: Final = re.compile(
    r"\bclick\b|\btyper\b|^[ \t]*@|add_command|\.command\(|\.group\(|add_typer", re.MULTILINE
)
_TYPES: Final[dict[str, dict[str, Any]]] = {
    "int": {"type": "integer"}, "float": {"type": "number"}, "bool": {"type": "boolean"}, "str": {"type": "string"},
    "click.INT": {"type": "integer"}, "click.FLOAT": {"type": "number"}, "click.BOOL": {"type": "boolean"},
    "click.IntRange": {"type": "integer"}, "click.FloatRange": {"type": "number"},
}  # fmt: skip
_OPTIONS: Final = frozenset({"click.option", "rich_click.option", "asyncclick.option"})
_ARGUMENTS: Final = frozenset({"click.argument", "rich_click.argument", "asyncclick.argument"})


@dataclass(slots=True)
class Declared:
    """A call that declares something: `click.option(…)`, `click.Choice(…)`, `typer.Option(…)`."""

    what: str
    arguments: list[Any]
    keywords: dict[str, Any]


@dataclass(slots=True)
class Command:
    """A command, or a group of them. `function` is None for a `typer.Typer()` before it has a callback."""

    name: str | None
    function: Function | None = None
    parts: list[Declared] = field(default_factory=list)
    keywords: dict[str, Any] = field(default_factory=dict)
    inner: dict[str, Command] = field(default_factory=dict)
    group: bool = False
    typer: bool = False


class ClickReader(Follower):
    """Follows a script and keeps its commands, decorators applied from the function outwards."""

    def __init__(self, source: str) -> None:
        super().__init__(source, INTERESTING)
        self.commands: list[Command] = []
        self.nested: set[int] = set()
        self.ran: Command | None = None

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, names: dict[str, Any]) -> Any:
        """Define a function and apply its decorators."""
        made: Any = Function(node, names)
        parts: list[Declared] = []
        for decorator in reversed(node.decorator_list):
            found = self.value(decorator, names)
            if isinstance(found, Declared) and found.what in _OPTIONS | _ARGUMENTS:
                parts.insert(0, found)
            elif isinstance(found, Symbol) and found.dotted.rpartition(".")[2] in {"command", "group"}:
                found = Declared(found.dotted, [], {})
                made = self._command(found, made, parts)
            elif isinstance(found, Declared):
                made = self._command(found, made, parts)
        names[node.name] = made
        return UNKNOWN

    def _command(self, declared: Declared, made: Any, parts: list[Declared]) -> Any:
        kind = declared.what.rpartition(".")[2]
        if kind == "callback" and isinstance(made, Function) and declared.arguments:
            owner = declared.arguments[0]
            if isinstance(owner, Command):
                owner.function = made
            return made
        if kind not in {"command", "group"} or not isinstance(made, Function):
            return made
        owner = (
            declared.arguments[0]
            if declared.arguments and isinstance(declared.arguments[0], Command)
            else None
        )
        words = [one for one in declared.arguments if isinstance(one, str)]
        name = words[0] if words else declared.keywords.get("name")
        plain = (
            re.sub(r"_(?:command|cmd|group|grp)$", "", made.node.name)
            if owner is None or not owner.typer
            else made.node.name
        )
        shown = name if isinstance(name, str) else plain.replace("_", "-").lower()
        command = Command(shown, made, list(parts), declared.keywords, group=kind == "group")
        command.typer = owner is not None and owner.typer
        self.commands.append(command)
        if owner is not None:
            owner.inner[shown] = command
            self.nested.add(id(command))
        return command

    def foreign(self, function: Any, arguments: list[Any], keywords: dict[str, Any], *, whole: bool) -> Any:  # noqa: ARG002 - the seam's signature
        """Note what is declared, and which command is run."""
        dotted = function.dotted if isinstance(function, Symbol) else ""
        if dotted == "typer.Typer":
            command = Command(None, keywords=keywords, group=True, typer=True)
            self.commands.append(command)
            return command
        if dotted == "typer.run" and arguments and isinstance(arguments[0], Function):
            self.ran = Command(None, arguments[0], typer=True)
            return UNKNOWN
        if dotted.startswith(("click.", "rich_click.", "asyncclick.", "typer.")):
            return Declared(dotted, arguments, keywords)
        owner = getattr(function, "owner", None)
        if isinstance(owner, Command):
            return self._of(owner, function.name, arguments, keywords)
        if isinstance(function, Command):
            self.ran = function
        return UNKNOWN

    def _of(self, owner: Command, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if name in {"command", "group", "callback"}:
            return Declared(f"click.{name}", [owner, *arguments], keywords)
        if name in {"add_command", "add_typer"} and arguments and isinstance(arguments[0], Command):
            inner = arguments[0]
            shown = (
                arguments[1]
                if len(arguments) > 1
                else keywords.get("name", inner.name or inner.keywords.get("name"))
            )
            if isinstance(shown, str):
                owner.inner[shown] = inner
            self.nested.add(id(inner))
        return UNKNOWN

    def chosen(self) -> Command | None:
        """Return the command that the script runs: the one it calls, else the outermost."""
        free = [one for one in self.commands if id(one) not in self.nested and (one.function or one.inner)]
        return self.ran or max(free, key=lambda one: len(one.inner), default=None)


def read_click(tree: ast.Module, source: str) -> tuple[Interface, ...]:
    """Return the interfaces of a script that uses click or typer; none when it has no command."""
    reader = ClickReader(source)
    names: dict[str, Any] = {"__name__": "__main__"}
    reader.body(tree.body, names)
    top = reader.chosen()
    if top is None:
        return ()
    single = top.typer and len(top.inner) == 1 and top.function is None
    if single:  # a Typer with one command is that command
        top = next(iter(top.inner.values()))
    return tuple(islice(_interfaces(top, reader, (), ()), MOST_INTERFACES))


def _interfaces(
    command: Command, reader: ClickReader, path: tuple[str, ...], above: tuple[Parameter, ...]
) -> Iterator[Interface]:
    made, complete = _parameters(command, reader, len(path))
    everything = (*above, *made)
    if command.inner:
        for name, inner in command.inner.items():
            yield from _interfaces(inner, reader, (*path, name), everything)
        return
    yield Interface(
        parameters=everything,
        grammar=Grammar.CLICK,
        description=_description(command),
        subcommand=path,
        complete=complete and not command.group,
        source="typer" if command.typer else "click",
    )


def _description(command: Command) -> str | None:
    said = command.keywords.get("help")
    if isinstance(said, str):
        return said
    own = ast.get_docstring(command.function.node) if command.function is not None else None
    return own.split("\f")[0] if own else None


def _parameters(command: Command, reader: ClickReader, level: int) -> tuple[tuple[Parameter, ...], bool]:
    if command.typer:
        return typer_parameters(command, reader, level)
    found: list[Parameter] = []
    complete = True
    for part in command.parts[:MOST_OPTIONS]:
        words = [word for word in part.arguments if isinstance(word, str)]
        if not words or len(words) < len(part.arguments):
            complete = False
            continue
        made = _argument(words[0], part, level) if part.what in _ARGUMENTS else _option(words, part, level)
        if made is not None:
            found.append(made)
    return tuple(found), complete and len(command.parts) <= MOST_OPTIONS


def _argument(name: str, part: Declared, level: int) -> Parameter:
    schema, _ = _value(part.keywords.get("type"), None)
    nargs = part.keywords.get("nargs", 1)
    required = part.keywords.get("required")
    default = part.keywords.get("default")
    several = isinstance(nargs, int) and nargs != 1
    if several:
        schema = {"type": "array", "items": schema}
        if nargs > 0:
            schema |= {"minItems": nargs, "maxItems": nargs}
    needed = required is True or (required is None and default is None and nargs != -1)
    return Parameter(
        property_name(name),
        _with_default(schema, default),
        form=Form.LIST if several else Form.VALUE,
        required=needed,
        level=level,
        fixed=nargs if several and nargs > 0 else None,
    )


def _option(words: list[str], part: Declared, level: int) -> Parameter | None:
    keywords = part.keywords
    flags = [word for word in words if word.startswith(("-", "/"))]
    if not flags or keywords.get("hidden") is True:
        return None
    flag = next((word for word in flags if word.startswith("--")), flags[0])
    flag, slash, off = flag.partition("/")
    default = keywords.get("default")
    text = _text(keywords.get("help"))
    needed = keywords.get("required") is True
    made = partial(Parameter, property_name(flag.strip()), flag=flag.strip(), required=needed, level=level)
    if keywords.get("count") is True:
        return made(schema={"type": "integer", "minimum": 0, "maximum": 20} | text, form=Form.COUNT)
    schema, many = _value(keywords.get("type"), default)
    is_flag = keywords.get("is_flag") is True or slash or "flag_value" in keywords
    if is_flag or (
        schema["type"] == "boolean" and "type" not in keywords and keywords.get("is_flag") is not False
    ):
        plain = {"default": default} if slash and isinstance(default, bool) else {}
        return made(schema={"type": "boolean"} | plain | text, form=Form.SWITCH, off=off.strip() or None)
    if schema["type"] == "boolean":
        schema = {"type": "boolean"}
    nargs = keywords.get("nargs", many)
    fixed = nargs if isinstance(nargs, int) and nargs > 1 else None
    form = Form.VALUE
    if fixed is not None:
        schema, form = {"type": "array", "items": schema, "minItems": fixed, "maxItems": fixed}, Form.LIST
    if keywords.get("multiple") is True:
        form = Form.REPEAT if fixed is None else Form.REPEATED_LISTS
        return made(schema={"type": "array", "items": schema} | text, form=form, fixed=fixed)
    return made(schema=_with_default(schema, default) | text, form=form, fixed=fixed)


def _value(kind: Any, default: Any) -> tuple[dict[str, Any], int]:
    """Return the schema of one value of a click type, and how many words it takes."""
    if isinstance(kind, list):
        return {"type": "string"}, len(kind)
    if isinstance(kind, Declared) and kind.what.endswith("Choice") and kind.arguments:
        names = kind.arguments[0]
        good = isinstance(names, list) and names and all(isinstance(name, str) for name in names)
        sensitive = kind.keywords.get("case_sensitive", True) is not False
        return {"type": "string", **({"enum": names} if good and sensitive else {})}, 1
    if isinstance(kind, Declared):
        schema = dict(_TYPES.get(kind.what, {"type": "string"}))
        bounds = dict(zip(("min", "max"), kind.arguments, strict=False)) | kind.keywords
        if kind.what.endswith("Range") and bounds.get("clamp") is not True:
            for key, word in (("min", "minimum"), ("max", "maximum")):
                if isinstance(bounds.get(key), int | float) and bounds.get(f"{key}_open") is not True:
                    schema[word] = bounds[key]
        return schema, 1
    if isinstance(kind, Symbol):
        return dict(_TYPES.get(kind.dotted, {"type": "string"})), 1
    guessed = {bool: "boolean", int: "integer", float: "number"}.get(type(default), "string")
    return {"type": guessed}, 1


def _with_default(schema: dict[str, Any], default: Any) -> dict[str, Any]:
    return {**schema, "default": default} if isinstance(default, str | int | float) else schema


def _text(help_: Any) -> dict[str, Any]:
    return {"description": " ".join(help_.split())} if isinstance(help_, str) and help_.strip() else {}


def typer_parameters(command: Command, reader: ClickReader, level: int) -> tuple[tuple[Parameter, ...], bool]:
    """Return the parameters of a typer command: those of the function, one by one."""
    if command.function is None:
        return (), True
    node, names = command.function.node, command.function.names
    signature = node.args
    arguments = [*signature.posonlyargs, *signature.args]
    defaults: list[ast.expr | None] = [
        *[None] * (len(arguments) - len(signature.defaults)),
        *signature.defaults,
    ]
    pairs = [
        *zip(arguments, defaults, strict=True),
        *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
    ]
    made = [_typed(one, default, reader, names, level) for one, default in pairs[:MOST_OPTIONS]]
    return tuple(one for one in made if one is not None), len(pairs) <= MOST_OPTIONS


def _typed(
    argument: ast.arg, default: ast.expr | None, reader: ClickReader, names: dict[str, Any], level: int
) -> Parameter | None:
    kind, declared = _annotation(argument.annotation, reader, names)
    given = reader.value(default, names) if default is not None else ...
    if isinstance(given, Declared):
        declared, given = (
            given,
            (given.arguments[0] if given.arguments else given.keywords.get("default", ...)),
        )
        flags = declared.arguments[1:]
    else:
        flags = declared.arguments if declared is not None else []
    schema = _annotated(kind, reader, names)
    if schema is None or (declared is not None and declared.keywords.get("hidden") is True):
        return None
    words = [flag for flag in flags if isinstance(flag, str)]
    positional = declared.what.endswith("Argument") if declared is not None else given is ...
    text = _text(declared.keywords.get("help")) if declared is not None else {}
    needed = given is ...
    several = schema["type"] == "array"
    name = argument.arg
    if positional:
        form = Form.LIST if several else Form.VALUE
        return Parameter(
            property_name(name), _with_default(schema, given) | text, form, required=needed, level=level
        )
    flag = next(
        (word for word in words if word.startswith("--")),
        words[0] if words else f"--{name.replace('_', '-')}",
    )
    flag, _, off = flag.partition("/")
    made = partial(Parameter, property_name(flag), flag=flag, required=needed, level=level)
    if schema["type"] == "boolean":
        negative = off or (f"--no-{flag[2:]}" if not words and flag.startswith("--") else None)
        return made(schema=_with_default(schema, given) | text, form=Form.SWITCH, off=negative)
    if declared is not None and declared.keywords.get("count") is True:
        return made(schema={"type": "integer", "minimum": 0, "maximum": 20} | text, form=Form.COUNT)
    return made(schema=_with_default(schema, given) | text, form=Form.REPEAT if several else Form.VALUE)


def _annotation(
    node: ast.expr | None, reader: ClickReader, names: dict[str, Any]
) -> tuple[ast.expr | None, Declared | None]:
    """Take `Annotated[kind, typer.Option(…)]` apart."""
    if (
        isinstance(node, ast.Subscript)
        and ast.unparse(node.value).endswith("Annotated")
        and isinstance(node.slice, ast.Tuple)
    ):
        kind, *rest = node.slice.elts
        found = [reader.value(one, names) for one in rest]
        return kind, next((one for one in found if isinstance(one, Declared)), None)
    return node, None


def _annotated(node: ast.expr | None, reader: ClickReader, names: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema of an annotation; None for typer's own context."""
    if isinstance(node, ast.BinOp):  # X | None
        sides = [side for side in (node.left, node.right) if not isinstance(side, ast.Constant)]
        node = sides[0] if sides else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    if isinstance(node, ast.Subscript):
        return _subscripted(node, reader, names)
    found = reader.value(node, names)
    if isinstance(found, Symbol):
        return (
            None if found.dotted.endswith(".Context") else dict(_TYPES.get(found.dotted, {"type": "string"}))
        )
    members = (reader.items(node, names) if isinstance(found, Class) and node is not None else None) or []
    values = [one.attributes.get("value") for one in members]
    strings = bool(values) and all(isinstance(value, str) for value in values)
    return {"type": "string", "enum": values} if strings else {"type": "string"}


def _subscripted(node: ast.Subscript, reader: ClickReader, names: dict[str, Any]) -> dict[str, Any] | None:
    outer = ast.unparse(node.value).rpartition(".")[2]
    if outer == "Optional":
        return _annotated(node.slice, reader, names)
    if outer in {"List", "list", "Sequence", "Tuple", "tuple", "Iterable"}:
        return {"type": "array", "items": _annotated(node.slice, reader, names) or {"type": "string"}}
    if outer == "Literal":
        options = reader.all_of(node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice], names)
        return {"type": "string", "enum": options}
    return {"type": "string"}
