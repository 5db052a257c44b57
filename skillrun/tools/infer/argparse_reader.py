"""Argparse: the parsers of a Python script, as the script would build them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.infer.argparse_option import SUPPRESS, Option, parameter
from skillrun.tools.infer.follow import Class, Follower, Function
from skillrun.tools.infer.values import UNKNOWN, Attribute, Symbol
from skillrun.tools.interface import MOST_INTERFACES, MOST_OPTIONS, Grammar, Interface

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.tools.interface import Parameter

INTERESTING: Final = re.compile(
    r"ArgumentParser|add_argument|add_(?:argument|mutually_exclusive)_group|add_subparsers|add_parser"
    r"|parse_(?:known_|intermixed_)?args|set_defaults|\bargparse\b"
)
_MADE: Final = re.compile(
    r"(?:ArgumentParser|ArgParser|add_(?:argument|mutually_exclusive)_group|add_parser)\s*\("
)
_TARGET: Final = re.compile(r"\b(\w+)\s*(?::[^=]*)?$")
_LOOK_BACK: Final = 300  # characters of the line before it
_PARSING: Final = frozenset(
    {"parse_args", "parse_known_args", "parse_intermixed_args", "parse_known_intermixed_args"}
)
_MOST_HANDED: Final = 50  # names of parsers; each one is looked for everywhere


@dataclass(slots=True)
class Parser:
    """An ArgumentParser as it was made and filled. `parsed` says that the script gives it its arguments."""

    keywords: dict[str, Any]
    options: list[Option] = field(default_factory=list)
    sub: Subparsers | None = None
    parsed: bool = False
    complete: bool = True
    parent: bool = False
    cut: int = 0  # positions that stand before the sub-commands

    def inherit(self) -> None:
        """Take the options of the parsers that it was made from."""
        parents = self.keywords.get("parents", [])
        for parent in parents if isinstance(parents, list) else [UNKNOWN]:
            if isinstance(parent, Parser):
                parent.parent = True
                self.options = [*self.options, *parent.options][:MOST_OPTIONS]
                self.complete = self.complete and parent.complete and len(self.options) < MOST_OPTIONS
            else:
                self.complete = False


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a parser, or a group of it of which only one may be given."""

    parser: Parser
    exclusive: bool = False


@dataclass(slots=True)
class Subparsers:
    """The sub-commands of a parser, in the order in which they were added."""

    keywords: dict[str, Any]
    parsers: dict[str, Parser] = field(default_factory=dict)
    helps: dict[str, Any] = field(default_factory=dict)

    @property
    def required(self) -> bool:
        """Whether the script stops without one of them."""
        return self.keywords.get("required") is True


def _targets(source: str) -> set[str]:
    """Name what parsers and groups are assigned to."""
    found: set[str] = set()
    for match in _MADE.finditer(source):
        line = source[max(match.start() - _LOOK_BACK, 0) : match.start()].rpartition("\n")[2]
        before, equals, _ = line.rpartition("=")
        target = _TARGET.search(before) if equals else None
        if target is not None:
            found.add(target[1])
    return found


class ArgparseReader(Follower):
    """Follows a script and keeps the parsers that it makes."""

    def __init__(self, source: str) -> None:
        # A parser that is handed on matters where it is handed on, whatever that is called.
        handed = "|".join(sorted(_targets(source))[:_MOST_HANDED])
        super().__init__(
            source, re.compile(rf"{INTERESTING.pattern}|\b(?:{handed})\s*[,)]") if handed else INTERESTING
        )
        self.parsers: list[Parser] = []

    def foreign(self, function: Any, arguments: list[Any], keywords: dict[str, Any], *, whole: bool) -> Any:
        """Build parsers as argparse does; a parser that is handed to something unknown is not complete."""
        if isinstance(function, Attribute) and isinstance(function.owner, Parser | Group | Subparsers):
            return self._method(function.owner, function.name, arguments, keywords, whole=whole)
        if isinstance(function, Symbol):
            name = function.dotted.rpartition(".")[2]
            if name in {"ArgumentParser", "ArgParser"}:
                return self._new(arguments, keywords)
            if function.dotted.startswith("argcomplete"):
                return UNKNOWN
            if "." in function.dotted:
                self._lost(arguments, keywords)
        return UNKNOWN

    def _new(self, arguments: list[Any], keywords: dict[str, Any]) -> Parser:
        names = ("prog", "usage", "description")
        parser = Parser({**dict(zip(names, arguments, strict=False)), **keywords})
        parser.inherit()
        self.parsers.append(parser)
        return parser

    def _lost(self, arguments: list[Any], keywords: dict[str, Any]) -> None:
        for one in (*arguments, *keywords.values()):
            owner = one.parser if isinstance(one, Group) else one
            if isinstance(owner, Parser):
                owner.complete = False

    def _method(
        self,
        owner: Parser | Group | Subparsers,
        name: str,
        arguments: list[Any],
        keywords: dict[str, Any],
        *,
        whole: bool,
    ) -> Any:
        if isinstance(owner, Subparsers):
            return self._add_parser(owner, arguments, keywords) if name == "add_parser" else UNKNOWN
        parser = owner.parser if isinstance(owner, Group) else owner
        if name == "add_argument":
            return self._add(owner, parser, arguments, keywords, whole=whole)
        if name in {"add_argument_group", "add_mutually_exclusive_group"}:
            return Group(parser, exclusive=name.startswith("add_m"))
        if name == "add_subparsers":
            parser.sub = Subparsers(keywords)
            parser.cut = len(parser.options)
            return parser.sub
        if name in _PARSING:
            parser.parsed = True
        if name == "set_defaults":
            self.spend(len(parser.options) * (len(keywords) + 1) * 10)
            parser.options = [option.with_default(keywords) for option in parser.options]
        return UNKNOWN

    @staticmethod
    def _add(
        owner: Parser | Group, parser: Parser, flags: list[Any], keywords: dict[str, Any], *, whole: bool
    ) -> Any:
        known = bool(flags) and all(isinstance(flag, str) and flag for flag in flags)
        if not known or not whole or len(parser.options) >= MOST_OPTIONS:
            parser.complete = False
            if not known or len(parser.options) >= MOST_OPTIONS:
                return UNKNOWN
        exclusive = isinstance(owner, Group) and owner.exclusive
        option = Option(tuple(flags), keywords, exclusive=exclusive)
        parser.options.append(option)
        return option

    def _add_parser(self, owner: Subparsers, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        name = arguments[0] if arguments else keywords.get("name", UNKNOWN)
        made = Parser(keywords)
        made.inherit()
        if isinstance(name, str):
            owner.parsers.setdefault(name, made)
            owner.helps.setdefault(name, keywords.get("help"))
        return made

    def chosen(self) -> Parser | None:
        """Return the parser that the script uses: one that is given the arguments, else the one with the most in it."""
        used = [parser for parser in self.parsers if parser.parsed and (parser.options or parser.sub)]
        rest = [parser for parser in self.parsers if not parser.parent]
        return next(iter(used), None) or max(rest, key=lambda parser: len(parser.options), default=None)


def read_argparse(tree: ast.Module, source: str) -> tuple[Interface, ...]:
    """Return the interface of a script, or one for each of its sub-commands; none when it makes no parser."""
    reader = ArgparseReader(source)
    names: dict[str, Any] = {"__name__": "__main__", "__doc__": ast.get_docstring(tree)}
    reader.body(tree.body, names)
    if not any(parser.parsed for parser in reader.parsers):
        # Nothing at the left margin leads to the parser: follow each function as if somebody called it.
        for found in list(names.values()):
            _enter(reader, found)
    parser = reader.chosen()
    return () if parser is None else tuple(islice(_interfaces(parser), MOST_INTERFACES))


def _enter(reader: ArgparseReader, found: Any) -> None:
    if isinstance(found, Function) and reader.relevant(found.node):
        reader.enter(found, [], {})
    elif isinstance(found, Class) and reader.relevant(found.node):
        for name in ("main", "run", "__init__", *found.members):
            member = found.members.get(name)
            if isinstance(member, Function) and reader.relevant(member.node):
                reader.enter(member, [], {})


def _interfaces(
    parser: Parser, path: tuple[str, ...] = (), above: tuple[Parameter, ...] = ()
) -> Iterator[Interface]:
    own: list[Parameter] = []
    late: list[Parameter] = []
    complete = parser.complete
    prefixes = parser.keywords.get("prefix_chars", "-")
    if prefixes != "-":
        complete = False
    for place, option in enumerate(parser.options):
        made = parameter(option, level=len(path))
        if made is not None and prefixes == "-":
            (late if parser.sub is not None and place >= parser.cut and made.flag is None else own).append(
                made
            )
    everything = (*above, *own)
    description = parser.keywords.get("description")
    text = description if isinstance(description, str) else None
    if parser.sub is None or not parser.sub.parsers:
        lacking = parser.sub is not None
        yield _interface(parser, (*everything, *late), path, text, complete=complete and not lacking)
        return
    inner = parser.sub
    for name, sub in inner.parsers.items():
        if sub.complete and not complete:
            sub.complete = False
        help_ = inner.helps.get(name)
        if (
            isinstance(help_, str)
            and help_ != SUPPRESS
            and not isinstance(sub.keywords.get("description"), str)
        ):
            sub.keywords["description"] = help_
        yield from _interfaces(sub, (*path, name), (*everything, *late))


def _interface(
    parser: Parser,
    parameters: tuple[Parameter, ...],
    path: tuple[str, ...],
    text: str | None,
    *,
    complete: bool,
) -> Interface:
    characters = parser.keywords.get("fromfile_prefix_chars")
    return Interface(
        parameters=parameters,
        grammar=Grammar.ARGPARSE,
        description=text,
        subcommand=path,
        complete=complete,
        from_file=characters if isinstance(characters, str) else "",
        source="argparse",
    )
