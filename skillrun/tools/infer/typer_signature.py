"""Typer: the parameters of a command, read from the signature of its function."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, Any

from skillrun.tools.infer.argparse_option import property_name
from skillrun.tools.infer.click_commands import TYPES, Declared, text_of, with_default
from skillrun.tools.infer.follow import Class
from skillrun.tools.infer.values import Symbol
from skillrun.tools.interface import MOST_OPTIONS, Form, Parameter

if TYPE_CHECKING:
    from skillrun.tools.infer.click_commands import ClickReader, Command


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
    text = text_of(declared.keywords.get("help")) if declared is not None else {}
    needed = given is ...
    several = schema["type"] == "array"
    name = argument.arg
    if positional:
        form = Form.LIST if several else Form.VALUE
        return Parameter(
            property_name(name), with_default(schema, given) | text, form, required=needed, level=level
        )
    flag = next(
        (word for word in words if word.startswith("--")),
        words[0] if words else f"--{name.replace('_', '-')}",
    )
    flag, _, off = flag.partition("/")
    made = partial(Parameter, property_name(flag), flag=flag, required=needed, level=level)
    if schema["type"] == "boolean":
        negative = off or (f"--no-{flag[2:]}" if not words and flag.startswith("--") else None)
        return made(schema=with_default(schema, given) | text, form=Form.SWITCH, off=negative)
    if declared is not None and declared.keywords.get("count") is True:
        return made(schema={"type": "integer", "minimum": 0, "maximum": 20} | text, form=Form.COUNT)
    return made(schema=with_default(schema, given) | text, form=Form.REPEAT if several else Form.VALUE)


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
            None if found.dotted.endswith(".Context") else dict(TYPES.get(found.dotted, {"type": "string"}))
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
