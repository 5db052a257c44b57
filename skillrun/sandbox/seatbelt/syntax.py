"""Syntax: the reader of Seatbelt's language, a Scheme, as libsandbox reads it (facts from 0xbf00/simbple).

Text becomes nodes with their places. Nothing is evaluated here, and nothing in a text takes long or nests
deeper than a limit that no real profile comes near.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.sandbox.seatbelt.source import Fault, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.sandbox.seatbelt.source import Source

MOST_TEXT: Final = 4 << 20
"""Characters of a profile. The largest public one has 887 KB (anthropics/claude-code#73468)."""
_MOST_NESTING: Final = 64
_BASES: Final = {"o": 8, "x": 16, "b": 2, "d": 10}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}
_PIECE: Final = re.compile(
    r"""[ \t\r\n\f\v]+|;[^\n]*|\#![^\n]*|[()']|\#"[^"]*"|"(?:[^"\\]|\\.)*"|[^\s()";']+""", re.DOTALL
)
_HEX: Final = re.compile(r"[0-9a-fA-F]{2}")
_OCTAL: Final = re.compile(r"[0-7]{1,3}")
_DIGITS: Final = re.compile(r"[+-]?[0-9a-fA-F]{1,18}")


class Kind(enum.Enum):
    """What a node is."""

    LIST = "list"
    WORD = "word"
    TEXT = "text"
    NUMBER = "number"
    TRUTH = "truth"
    QUOTE = "quote"


@dataclass(frozen=True, slots=True)
class Node:
    """One form: a list of nodes, or a value. A quoted one holds the node behind the quote mark."""

    kind: Kind
    span: Span
    value: str | int | bool = ""
    items: tuple[Node, ...] = ()


@dataclass(slots=True)
class _Open:
    """A list that is being read: where it began, its items so far, and the quote marks before the next one."""

    start: int
    items: list[Node]
    quotes: list[int]


def read(source: Source) -> tuple[Node, ...]:
    """Read the forms of a profile. Raises Fault where it is not Scheme, or too much of it."""
    text = source.text
    if len(text) > MOST_TEXT:
        raise Fault("too-large", f"a profile of {len(text)} characters is more than is read ({MOST_TEXT})")
    stack = [_Open(0, [], [])]
    for piece, span in _pieces(text):
        if piece in {"(", "'"} and len(stack) + len(stack[-1].quotes) > _MOST_NESTING:
            raise Fault("too-deep", f"forms nest deeper than {_MOST_NESTING}", span)
        if piece == "(":
            stack.append(_Open(span.start, [], []))
        elif piece == "'":
            stack[-1].quotes.append(span.start)
        elif piece == ")":
            done = stack.pop()
            if not stack:
                raise Fault("unbalanced", "a closing parenthesis without an opening one", span)
            _finished(done)
            _add(stack[-1], Node(Kind.LIST, Span(done.start, span.end), items=tuple(done.items)))
        else:
            _add(stack[-1], _atom(piece, span))
    if len(stack) > 1:
        last = stack[-1].start
        raise Fault("unbalanced", "a parenthesis that is never closed", Span(last, last + 1))
    _finished(stack[0])
    return tuple(stack[0].items)


def _pieces(text: str) -> Iterator[tuple[str, Span]]:
    """Give parentheses, quote marks and values; blanks and comments are left out."""
    place = 0
    while place < len(text):
        found = _PIECE.match(text, place)
        if found is None:
            raise Fault("unterminated-string", "a string that never ends", Span(place, len(text)))
        piece, place = found.group(), found.end()
        if not piece[0].isspace() and piece[0] != ";" and not piece.startswith("#!"):
            yield piece, Span(found.start(), place)


def _finished(done: _Open) -> None:
    if done.quotes:
        raise Fault(
            "unbalanced", "a quote mark with nothing behind it", Span(done.quotes[0], done.quotes[0] + 1)
        )


def _add(to: _Open, node: Node) -> None:
    """Add a node, with the quote marks that stood before it."""
    for start in reversed(to.quotes):
        node = Node(Kind.QUOTE, Span(start, node.span.end), items=(node,))
    to.quotes.clear()
    to.items.append(node)


def _atom(piece: str, span: Span) -> Node:
    """Read one value."""
    if piece.startswith('#"'):
        return Node(Kind.TEXT, span, piece[2:-1])  # raw: no escapes at all
    if piece.startswith('"'):
        return Node(Kind.TEXT, span, _cooked(piece[1:-1]))
    if piece in {"#t", "#f"}:
        return Node(Kind.TRUTH, span, piece == "#t")
    number = _number(piece)
    return Node(Kind.WORD, span, piece) if number is None else Node(Kind.NUMBER, span, number)


def _number(piece: str) -> int | None:
    """Read a number, decimal or `#o0004`; None for what is none."""
    base = _BASES.get(piece[1:2], 10) if piece.startswith("#") else 10
    digits = piece[2:] if piece.startswith("#") else piece
    if not _DIGITS.fullmatch(digits):
        return None
    try:
        return int(digits, base)
    except ValueError:
        return None


def _cooked(text: str) -> str:
    r"""Resolve the escapes of a string. One that is unknown stands for its own character: `\u` is `u`."""
    if "\\" not in text:
        return text
    parts: list[str] = []
    place = 0
    while place < len(text):
        stop = text.find("\\", place)
        if stop < 0:
            parts.append(text[place:])
            break
        parts.append(text[place:stop])
        letter = text[stop + 1]
        place = stop + 2
        if letter == "x" and (found := _HEX.match(text, place)):
            parts.append(chr(int(found.group(), 16)))
            place = found.end()
        elif found := _OCTAL.match(text, stop + 1):
            parts.append(chr(int(found.group(), 8) & 0xFF))
            place = found.end()
        else:
            parts.append(_ESCAPES.get(letter, letter))
    return "".join(parts)
