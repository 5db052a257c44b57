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

from skillrun.sandbox.seatbelt.automaton import Automaton, NoPattern, TooComplex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillrun.sandbox.seatbelt.automaton import Piece

_MOST: Final = 20_000  # characters of one pattern
_SAFE_REPETITIONS: Final = 2  # backtracking over these takes at most the square of a path's 1,024 bytes
_ATOM: Final = re.compile(
    r"\\(?P<escaped>.)|\[(?P<set>\^?\]?[^\]]*)\]|(?P<mark>[().^$|*+?])|(?P<plain>.)", re.DOTALL
)
_CLASSES_OF_OTHERS: Final = frozenset("dDwWsSbBAZ")


# A count, and a class by its name: what the kernel's engine makes of them nobody published.
_COUNT: Final = re.compile(r"\{[0-9]*,?[0-9]*\}")
_NAMED_CLASS: Final = re.compile(r"\[[:.=][^\]]*[:.=]\]")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regex as written. When it never matches, `dead` says why; `doubtful` names what nobody can be sure of.

    `finds` tells whether it is found in a text, None where that can't be told.
    """

    text: str
    finds: Callable[[str], bool | None]
    dead: str | None = None
    doubtful: str | None = None


class _Dead(Exception):  # noqa: N818 - a property of a pattern
    """The pattern matches nothing."""


@functools.lru_cache(maxsize=4096)
def compiled(text: str) -> Pattern:
    """Read a pattern of the dialect."""
    try:
        finds = _finder(text)
    except (_Dead, NoPattern) as why:
        return Pattern(text, lambda _: False, dead=str(why))
    except TooComplex as why:
        return Pattern(text, lambda _: None, doubtful=f"{why}: more than is tried here")
    bare = _ATOM.sub(lambda found: found.group() if found["plain"] or found["mark"] else "", text)
    if _COUNT.search(bare):
        return Pattern(text, lambda _: None, doubtful="`{` may be a character or the begin of a count")
    if _NAMED_CLASS.search(text):
        return Pattern(text, lambda _: None, doubtful="a class by its name may be no more than its letters")
    doubtful = "`{` may be a character or the begin of a count" if "{" in bare else None
    return Pattern(text, finds, doubtful=doubtful)


def _finder(text: str) -> Callable[[str], bool | None]:
    """Return what searches.

    The kernel compares bytes, and whether `.` and a class take one or a whole letter, nobody published: beyond
    ASCII both are tried, and where they differ the answer is None.
    """
    search = _engine(_pieces(text))
    plain = text.isascii()
    bytewise = search if plain else _engine(_pieces(_as_bytes(text)))

    def finds(subject: str) -> bool | None:
        found = bool(search(subject))
        if plain and subject.isascii():
            return found
        return found if bool(bytewise(_as_bytes(subject))) is found else None

    return finds


def _as_bytes(text: str) -> str:
    """Write a text as one character for each of its bytes."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _pieces(text: str) -> list[Piece]:
    """Take a pattern apart."""
    if len(text) > _MOST:
        raise TooComplex(f"a pattern of over {_MOST} characters")
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


# What a volume that ignores case takes for two letters, and for one: Unicode's full case folding (CVE-2026-23950 is the
# same with `ss` in node-tar), and U+212A, which is a `K` on every volume. Any letters beyond ASCII stand for them here.
_PAIRS: Final = ("ffi", "ffl", "ff", "fi", "fl", "st", "ss")
_OTHER_LETTERS: Final = "[^ -~]+"
_MOST_SPELLINGS: Final = 24
_CASED_BELOW: Final = 0x20000  # no letter above has a case (Unicode's CaseFolding.txt ends at U+1E921)


@functools.lru_cache(maxsize=4096)
def folded(text: str) -> str:
    """Write a text as a pattern that matches it as a volume does that ignores case and Unicode form.

    `AGENTS` may also be written with U+017F for its last letter, `config` with U+FB01 in it. A character that means
    something becomes a class of one, the spelling that works in every known release; the four that can't stand in
    a class are escaped (nolabs-ai/nono, crates/nono/src/sandbox/macos.rs).
    """
    parts = []
    # A letter that folds to plain ones is written as these: they stand for it below.
    letters = ((one, one.casefold()) for one in unicodedata.normalize("NFC", text))
    text = "".join(plain if plain.isascii() and not one.isascii() else one for one, plain in letters)
    place = 0
    while place < len(text):
        end = _end_of_pairs(text, place)
        if end > place:
            parts.append(_joined(text[place:end]))
        else:
            end = place + 1
            parts.append(_letter(text[place]))
        place = end
    return "".join(parts)


@functools.cache
def _letters_by_fold() -> Mapping[str, frozenset[str]]:
    """Return letters beyond ASCII by what they fold to, where several do: both small sigmas are one letter to a volume."""
    found: dict[str, set[str]] = {}
    for letter in map(chr, range(0x80, _CASED_BELOW)):
        plain = letter.casefold()
        if plain != letter:
            found.setdefault(plain, {plain}).add(letter)
    return {plain: frozenset(letters) for plain, letters in found.items()}


def _letter(character: str) -> str:
    """Write one character."""
    if not character.isascii():
        plain = character.casefold()
        forms = {character, plain, plain.upper(), *_letters_by_fold().get(plain, ())}
        forms |= {unicodedata.normalize("NFD", form) for form in forms}
        return f"({'|'.join(sorted(forms))})" if len(forms) > 1 else character
    if character in "sSkK":
        return f"([{character.lower()}{character.upper()}]|{_OTHER_LETTERS})"
    if character.isalpha():
        return f"[{character.lower()}{character.upper()}]"
    if character in "[]^\\":
        return f"\\{character}"
    return f"[{character}]" if character in ".$()|*+?{}" else character


def _pair_at(text: str, place: int) -> list[str]:
    return [pair for pair in _PAIRS if text[place : place + len(pair)].lower() == pair]


def _end_of_pairs(text: str, place: int) -> int:
    """Return where letters end that may be written together, from a place on; the place itself if none are there."""
    end = place
    while place <= end:
        end = max([end, *(place + len(pair) for pair in _pair_at(text, place))])
        place += 1
        if place >= end:
            break
    return end


def _joined(letters: str) -> str:
    """Write letters of which some may be written together."""
    spelled: dict[int, list[str]] = {len(letters): [""]}
    for place in range(len(letters) - 1, -1, -1):
        found = [_letter(letters[place]) + rest for rest in spelled[place + 1]]
        for pair in _pair_at(letters, place):
            found += [_OTHER_LETTERS + rest for rest in spelled[place + len(pair)]]
        spelled[place] = found
        if len(found) > _MOST_SPELLINGS:  # too many to write: then any other letters anywhere in them
            return f"({''.join(map(_letter, letters))}|[^/]*{_OTHER_LETTERS}[^/]*)"
    return f"({'|'.join(spelled[0])})"
