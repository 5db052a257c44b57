"""Click: the commands of a Python script and their options, read from decorators; typer's from its signatures."""

from __future__ import annotations

import ast
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from skillrun.tools.infer.argparse_option import property_name
from skillrun.tools.infer.click_commands import ARGUMENTS, TYPES, ClickReader, Declared, text_of, with_default
from skillrun.tools.infer.typer_signature import typer_parameters
from skillrun.tools.infer.values import Symbol
from skillrun.tools.interface import MOST_INTERFACES, MOST_OPTIONS, Form, Grammar, Interface, Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.tools.infer.click_commands import Command


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
        made = _argument(words[0], part, level) if part.what in ARGUMENTS else _option(words, part, level)
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
        with_default(schema, default),
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
    text = text_of(keywords.get("help"))
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
    return made(schema=with_default(schema, default) | text, form=form, fixed=fixed)


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
        schema = dict(TYPES.get(kind.what, {"type": "string"}))
        bounds = dict(zip(("min", "max"), kind.arguments, strict=False)) | kind.keywords
        if kind.what.endswith("Range") and bounds.get("clamp") is not True:
            for key, word in (("min", "minimum"), ("max", "maximum")):
                if isinstance(bounds.get(key), int | float) and bounds.get(f"{key}_open") is not True:
                    schema[word] = bounds[key]
        return schema, 1
    if isinstance(kind, Symbol):
        return dict(TYPES.get(kind.dotted, {"type": "string"})), 1
    guessed = {bool: "boolean", int: "integer", float: "number"}.get(type(default), "string")
    return {"type": guessed}, 1
