"""Node: the options of a script that uses `util.parseArgs`, read from the object literal it is given.

There is no JavaScript parser among the dependencies and no need for one: the call is found in text from which comments are
taken out, and its argument is read as a literal of objects, strings, truths, numbers and names, nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.infer.argparse_option import property_name
from skillrun.tools.interface import MOST_OPTIONS, Form, Grammar, Interface, Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALL = re.compile(r"\bparseArgs\s*\(")
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*(?:.*?\*/|.*)|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\$])*`)"""
    r"""|(?P<number>-?\d+(?:\.\d+)?)|(?P<name>[A-Za-z_$][\w$.]*)|(?P<mark>[{}\[\](),:])|(?P<other>.)""",
    re.DOTALL,
)
_NAMED = re.compile(r"\b(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*=\s*(?=[\[{'\"])")
_ENDS: Final = frozenset({",", "}", "]", ")"})
_DEEPEST: Final = 20
_MOST_TOKENS: Final = 20_000
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "undefined": None}


class _Names:
    """The literals that a source gives names to, each read once, within one bound for all of them."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._starts = {match[1]: match.end() for match in _NAMED.finditer(source)}
        self._values: dict[str, Any] = {}
        self.left = _MOST_TOKENS

    def tokens(self, start: int) -> Iterator[tuple[str, str]]:
        """Yield the tokens behind a place. Raises ValueError when too many were read."""
        for match in _TOKEN.finditer(self._source, start):
            self.left -= 1
            if self.left < 0:
                raise ValueError("too long")
            if match.lastgroup is not None:
                yield match.lastgroup, match[0]

    def value(self, name: str, depth: int) -> Any:
        """Return what a name stands for, None where it is no literal."""
        if name not in self._values:
            self._values[name] = None  # for one that is made of itself
            if name in self._starts and depth < _DEEPEST:
                self._values[name] = _Literal(self, self._starts[name]).value(depth + 1)
        return self._values[name]

    def known(self, name: str) -> bool:
        """Whether a literal has this name."""
        return name in self._starts


class _Literal:
    """Reads one literal from tokens. Raises ValueError for anything else."""

    def __init__(self, names: _Names, start: int) -> None:
        self._stream = names.tokens(start)
        self._ahead: tuple[str, str] | None = None
        self._names = names

    def value(self, depth: int = 0) -> Any:
        """Read a value."""
        kind, text = self._next()
        if depth > _DEEPEST:
            raise ValueError("too deep")
        if text == "{":
            return self._object(depth)
        if text == "[":
            return self._list(depth)
        if kind == "string":
            return re.sub(r"\\(.)", r"\1", text[1:-1])
        if kind == "number":
            return float(text) if "." in text else int(text)
        if kind == "name":
            return self._named(text, depth)
        raise ValueError(text)

    def _named(self, name: str, depth: int) -> Any:
        if name in _WORDS:
            return _WORDS[name]
        if self._names.known(name):
            return self._names.value(name, depth)
        depth_of_calls = 0
        while (mark := self._peek()) and (
            depth_of_calls or mark not in _ENDS
        ):  # an expression: skipped to its end
            depth_of_calls += (mark in "([{") - (mark in ")]}")
            self._next()
        return None

    def _object(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while (token := self._next())[1] != "}":
            kind, key = token
            if key == ",":
                continue
            if kind == "string":
                key = key[1:-1]
            elif kind not in {"name", "number"}:
                raise ValueError(key)
            if self._peek() == ":":
                self._next()
                made[key] = self.value(depth + 1)
            else:  # `{ options }` is `{ options: options }`
                made[key] = self._named(key, depth)
        return made

    def _list(self, depth: int) -> list[Any]:
        made: list[Any] = []
        while self._peek() != "]":
            if self._peek() == ",":
                self._next()
                continue
            made.append(self.value(depth + 1))
        self._next()
        return made

    def _peek(self) -> str:
        if self._ahead is None:
            self._ahead = next(self._stream, None)
        return self._ahead[1] if self._ahead is not None else ""

    def _next(self) -> tuple[str, str]:
        if not self._peek() or self._ahead is None:
            raise ValueError("the source ends")
        token, self._ahead = self._ahead, None
        return token


def read_node(source: str) -> tuple[Interface, ...]:
    """Return the interface of a script that calls `parseArgs` with a literal; none when it does not."""
    call = _CALL.search(source)
    if call is None or ("parseArgs" not in source[: call.start()] and "util.parseArgs" not in source):
        return ()
    try:
        config = _Literal(_Names(source), call.end()).value()
    except ValueError:
        return ()
    if not isinstance(config, dict) or ("args" in config and config["args"] is not None):
        return ()
    options = config.get("options")
    if isinstance(options, dict) and len(options) > MOST_OPTIONS:
        return ()
    made = [_option(name, one, config) for name, one in options.items()] if isinstance(options, dict) else []
    complete = isinstance(options, dict) or "options" not in config
    words = [
        Parameter(
            "args",
            {"type": "array", "items": {"type": "string"}, "description": "Words that belong to no option."},
            form=Form.LIST,
        )
    ]
    positional = config.get("allowPositionals") is True or config.get("strict") is False
    known = [one for one in made if one is not None]
    return (
        Interface(
            tuple(known + (words if positional else [])),
            grammar=Grammar.NODE,
            complete=complete and len(known) == len(made),
            source="util.parseArgs",
        ),
    )


def _option(name: str, option: Any, config: dict[str, Any]) -> Parameter | None:
    if not isinstance(option, dict):
        return None
    kind, default = option.get("type"), option.get("default")
    off = f"--no-{name}" if config.get("allowNegative") is True else None
    many = option.get("multiple") is True
    plain = {"default": default} if isinstance(default, str | bool) and not many else {}
    if kind == "boolean":
        if many:
            return Parameter(
                property_name(name), {"type": "integer", "minimum": 0, "maximum": 20}, Form.COUNT, f"--{name}"
            )
        return Parameter(
            property_name(name),
            {"type": "boolean", **(plain if off else {})},
            Form.SWITCH,
            f"--{name}",
            off=off,
        )
    if kind != "string":
        return None
    if many:
        return Parameter(
            property_name(name), {"type": "array", "items": {"type": "string"}}, Form.REPEAT, f"--{name}"
        )
    return Parameter(property_name(name), {"type": "string", **plain}, Form.VALUE, f"--{name}")
