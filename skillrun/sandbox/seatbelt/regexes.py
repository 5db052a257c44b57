"""Regexes: the small dialect that the kernel compiles, matched as the kernel would.

Characters, `.`, `^`, `$`, classes with ranges, groups, `|`, `*`, `+` and `?` (malus-security/sandblaster). What
else looks like a regex compiles on a Mac and then never matches (nolabs-ai/nono#1763, #1764): so it does here.
A search, not a full match; case-sensitive; `.` matches every character, line ends included.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.sandbox.seatbelt.automaton import Automaton, TooComplex

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillrun.sandbox.seatbelt.automaton import Piece

_MOST: Final = 20_000  # characters of one pattern
_SAFE_REPETITIONS: Final = 2  # backtracking over these takes at most the square of a path's 1,024 bytes
_ATOM: Final = re.compile(
    r"\\(?P<escaped>.)|\[(?P<set>\^?\]?[^\]]*)\]|(?P<mark>[().^$|*+?])|(?P<plain>.)", re.DOTALL
)
_CLASSES_OF_OTHERS: Final = frozenset("dDwWsSbBAZ")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regex as written. When it never matches, `dead` says why.

    `doubtful` names syntax whose meaning on a Mac nobody published.
    """

    text: str
    search: Callable[[str], object]
    dead: str | None = None
    doubtful: str | None = None


class _Dead(Exception):  # noqa: N818 - a property of a pattern
    """The pattern matches nothing."""


@functools.lru_cache(maxsize=4096)
def compiled(text: str) -> Pattern:
    """Read a pattern of the dialect."""
    try:
        pieces = _pieces(text)
        search = _engine(pieces)
    except (_Dead, TooComplex) as why:
        return Pattern(text, lambda _: None, dead=str(why))
    braces = any(found["plain"] == "{" for found in _ATOM.finditer(text))
    return Pattern(
        text, search, doubtful="`{` may be a character or the begin of a count" if braces else None
    )


def _pieces(text: str) -> list[Piece]:
    """Take a pattern apart."""
    if len(text) > _MOST:
        raise _Dead(f"a pattern of over {_MOST} characters")
    if "(?" in text:
        raise _Dead("groups that begin with `(?` are not known to this engine")
    pieces: list[Piece] = []
    repeatable = False
    place = 0
    while place < len(text):
        found = _ATOM.match(text, place)
        if found is None:
            raise _Dead("it ends in the middle of a class or an escape")
        place = found.end()
        escaped, members, mark = found["escaped"], found["set"], found["mark"]
        if escaped is not None and (escaped in _CLASSES_OF_OTHERS or escaped.isdigit()):
            raise _Dead(f"`\\{escaped}` is not known to this engine")
        if mark is not None and mark in "*+?" and not repeatable:
            raise _Dead(f"`{mark}` has nothing to repeat, or repeats a repetition")
        if found["plain"] in {"[", "\\"}:
            raise _Dead("it ends in the middle of a class or an escape")
        repeatable = mark is None or mark in ".)"
        if mark is not None and mark != ".":
            pieces.append(("mark", mark))
        else:
            pieces.append(("class", _one_character(escaped, members, found["plain"])))
    return pieces


@functools.lru_cache(maxsize=4096)
def _one_character(escaped: str | None, members: str | None, plain: str | None) -> re.Pattern[str]:
    """Write a class, an escaped character, a plain one or, with none of them, `.` as a pattern of Python."""
    if members is not None:
        sign = "^" if members.startswith("^") else ""
        inside = "".join(c if c == "-" else re.escape(c) for c in members[len(sign) :])
        try:
            return re.compile(f"[{sign}{inside}]")
        except re.error as wrong:
            raise _Dead(f"`[{members}]` is no class: {wrong}") from wrong
    single = escaped if escaped is not None else plain
    return re.compile(re.escape(single) if single is not None else r"[\s\S]")


def _engine(pieces: list[Piece]) -> Callable[[str], object]:
    """Choose how to search: by Python's engine where no text can make it slow, else by an automaton."""
    automaton = Automaton(pieces)  # also finds what is no pattern
    repetitions = sum(1 for kind, value in pieces if kind == "mark" and value in {"*", "+"})
    groups = any(a == ("mark", ")") and b[1] in {"*", "+"} for a, b in itertools.pairwise(pieces))
    anchored = bool(pieces) and pieces[0] == ("mark", "^")
    if groups or repetitions + (not anchored) > _SAFE_REPETITIONS:
        return automaton.search
    words = (r"\Z" if v == "$" else v if isinstance(v, str) else v.pattern for _, v in pieces)
    return re.compile("".join(words)).search


def quoted(text: str) -> str:
    """Write a text as a pattern that matches it, as Apple's `regex-quote` does."""
    return re.sub(r"([\^.\[$()|*+?{\\])", r"\\\1", text)


@functools.lru_cache(maxsize=4096)
def folded(text: str) -> str:
    """Write a text as a pattern that matches it in either case of its letters, composed or not (Unicode NFC, NFD).

    That is how most volumes of a Mac compare names. A character that means something becomes a class of one, the spelling that works in every known
    release; the four that can't stand in a class are escaped (nolabs-ai/nono, crates/nono/src/sandbox/macos.rs).
    """
    parts = []
    for character in text if text.isascii() else unicodedata.normalize("NFC", text):
        if character.isascii() and character.isalpha():
            parts.append(f"[{character.lower()}{character.upper()}]")
        elif not character.isascii():
            cases = (character, character.lower(), character.upper())
            spellings = {form for case in cases for form in (case, unicodedata.normalize("NFD", case))}
            parts.append(f"({'|'.join(sorted(spellings))})" if len(spellings) > 1 else character)
        elif character in "[]^\\":
            parts.append(f"\\{character}")
        elif character in ".$()|*+?{}":
            parts.append(f"[{character}]")
        else:
            parts.append(character)
    return "".join(parts)
