"""Commands: what a source that uses click or typer declares, kept as its decorators say it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.infer.follow import Follower, Function
from skillrun.tools.infer.values import UNKNOWN, Symbol

if TYPE_CHECKING:
    import ast

INTERESTING: Final = re.compile(
    r"\bclick\b|\btyper\b|^[ \t]*@|add_command|\.command\(|\.group\(|add_typer", re.MULTILINE
)
TYPES: Final[dict[str, dict[str, Any]]] = {
    "int": {"type": "integer"}, "float": {"type": "number"}, "bool": {"type": "boolean"}, "str": {"type": "string"},
    "click.INT": {"type": "integer"}, "click.FLOAT": {"type": "number"}, "click.BOOL": {"type": "boolean"},
    "click.IntRange": {"type": "integer"}, "click.FloatRange": {"type": "number"},
}  # fmt: skip
OPTIONS: Final = frozenset({"click.option", "rich_click.option", "asyncclick.option"})
ARGUMENTS: Final = frozenset({"click.argument", "rich_click.argument", "asyncclick.argument"})


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
            if isinstance(found, Declared) and found.what in OPTIONS | ARGUMENTS:
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


def with_default(schema: dict[str, Any], default: Any) -> dict[str, Any]:
    """Return a schema with a default where it is plain."""
    return {**schema, "default": default} if isinstance(default, str | int | float) else schema


def text_of(help_: Any) -> dict[str, Any]:
    """Return a help text as the description of a schema, on one line."""
    return {"description": " ".join(help_.split())} if isinstance(help_, str) and help_.strip() else {}
