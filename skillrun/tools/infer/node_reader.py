"""Node: the options of a script that uses `util.parseArgs`, read from the object literal it is given.

There is no JavaScript parser among the dependencies and no need for one: the call is found in text from which comments are
taken out, and its argument is read as a literal of objects, strings, truths, numbers and names, nothing else.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.infer.argparse_option import property_name
from skillrun.tools.interface import MOST_OPTIONS, Form, Grammar, Interface, Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALL = re.compile(r"\bparseArgs\s*\(")
_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\$])*`)"""
    r"""|(?P<number>-?\d+(?:\.\d+)?)|(?P<name>[A-Za-z_$][\w$.]*)|(?P<mark>[{}\[\](),:])|(?P<other>.)""",
    re.DOTALL,
)
_DEEPEST: Final = 20
_MOST_TOKENS: Final = 20_000
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "undefined": None}


class _Literal:
    """Reads one literal from tokens. Raises ValueError for anything else."""

    def __init__(self, text: str, start: int, names: dict[str, int], budget: list[int]) -> None:
        self._text = text
        self._coming = _tokens(text, start, budget)
        self._tokens: list[tuple[str, str]] = []
        self._place = 0
        self._names = names  # and where in the text their literals begin
        self._budget = budget  # tokens left, for this one and those in it

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
        if name in self._names and depth < _DEEPEST:
            return _Literal(self._text, self._names[name], self._names, self._budget).value(depth + 5)
        depth_of_calls = 0
        while mark := self._peek():  # an expression: skipped up to the end of this value
            if depth_of_calls == 0 and mark in {",", "}", "]", ")"}:
                break
            depth_of_calls += (mark in "([{") - (mark in ")]}")
            self._place += 1
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
        if self._place == len(self._tokens):
            self._tokens += itertools.islice(self._coming, 1)
        return self._tokens[self._place][1] if self._place < len(self._tokens) else ""

    def _next(self) -> tuple[str, str]:
        if not self._peek():
            raise ValueError("the source ends")
        self._place += 1
        return self._tokens[self._place - 1]


def _tokens(text: str, start: int, budget: list[int]) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text, start):
        budget[0] -= 1
        if budget[0] < 0:
            return
        if match.lastgroup is not None:
            yield match.lastgroup, match[0]


def read_node(source: str) -> tuple[Interface, ...]:
    """Return the interface of a script that calls `parseArgs` with a literal; none when it does not."""
    call = _CALL.search(source)
    if call is None or ("parseArgs" not in source[: call.start()] and "util.parseArgs" not in source):
        return ()
    names = {
        m[1]: m.end()
        for m in re.finditer(r"\b(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*=\s*(?=[\[{'\"])", source)
    }
    try:
        config = _Literal(source, call.end(), names, [_MOST_TOKENS]).value()
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
