"""Argv: validated arguments of a call as the words of a command line, so that the script reads exactly what was meant.

Always a list, never a shell string. A value that a script's parser could not tell from an option, or would read as
something else, is a fault that is told before anything starts.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.interface import Form, Grammar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillrun.tools.interface import Interface, Parameter

# What argparse of every supported Python takes for a negative number and not for an option (its _negative_number_matcher).
_NEGATIVE: Final = re.compile(r"-\d+$|-\d*\.\d+$")
_OPEN: Final = frozenset({Form.LIST, Form.REPEATED_LISTS, Form.BARE})
"""Forms whose flag may go on taking the words behind it."""


class ArgumentFaultError(ValueError):
    """A value that can't be put on the script's command line; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words behind the script, and its standard input."""

    argv: tuple[str, ...]
    stdin: bytes = b""


def words_of(interface: Interface, arguments: Mapping[str, Any]) -> Words:
    """Return the words that say `arguments`, which fit the interface's schema. Raises ArgumentFaultError."""
    writer = _Writer(interface, arguments)
    levels = [writer.level(depth) for depth in range(len(interface.subcommand) + 1)]
    argv: list[str] = []
    for depth, words in enumerate(levels):
        argv += words
        if depth < len(interface.subcommand):
            argv.append(interface.subcommand[depth])
    for word in argv:
        _check(word)
    return Words(tuple(argv), _stdin(interface, arguments))


def _check(word: str) -> None:
    if "\0" in word:
        raise ArgumentFaultError("a value holds a NUL character, which no command line can carry")
    try:
        word.encode()
    except UnicodeEncodeError:
        raise ArgumentFaultError("a value holds half a character (a lone surrogate)") from None


def _stdin(interface: Interface, arguments: Mapping[str, Any]) -> bytes:
    """Return standard input: the text of the one parameter that goes there, else JSON."""
    takers = [parameter for parameter in interface.parameters if parameter.form is Form.STDIN]
    given = {one.name: arguments[one.name] for one in takers if arguments.get(one.name) is not None}
    if not given:
        return b""
    value: Any = next(iter(given.values())) if len(takers) == 1 else given
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (
        text.encode("utf-8", "surrogatepass") if isinstance(value, str) else text.encode("utf-8", "replace")
    )


@dataclass(slots=True)
class _Writer:
    """Writes the words of one call."""

    interface: Interface
    arguments: Mapping[str, Any]

    def level(self, depth: int) -> list[str]:
        """Write what stands between two sub-commands."""
        own = [one for one in self.interface.parameters if one.level == depth and one.form is not Form.STDIN]
        flags = [one for one in own if one.flag is not None]
        # The flags that go on taking words come first: the next flag then ends them.
        if self.interface.grammar is not Grammar.PLAIN:
            flags.sort(key=lambda one: one.form not in _OPEN)
        written = [words for one in flags if (words := list(self._flag(one)))]
        options = [word for words in written for word in words]
        grammar = self.interface.grammar
        rest = [one for one in own if one.flag is None and one.form is Form.REST]
        positions = self._positions([one for one in own if one.flag is None and one.form is not Form.REST])
        free = [word for one in rest for word in self._rest(one, first=not positions)]
        if grammar is Grammar.PLAIN:
            return [*positions, *options, *free]
        takes_on = bool(written) and self._takes_on(written[-1])
        if not self.interface.complete and rest:  # words for what could not be read: options, as a rule
            options, free = [*options, *free], []
        dashed = any(word.startswith("-") and word != "-" for word in positions)
        if takes_on and (free or depth < len(self.interface.subcommand)) and not positions:
            flag = written[-1][0]
            raise ArgumentFaultError(
                f"the list of `{flag}` would take in what comes after it; give it one value"
            )
        mark = ["--"] if positions and (dashed or takes_on) else []
        return [*options, *mark, *positions, *free]

    def _takes_on(self, words: Sequence[str]) -> bool:
        flag = words[0].partition("=")[0]
        one = next(one for one in self.interface.parameters if flag in {one.flag, one.off})
        joined = words[-1].startswith(f"{flag}=")
        return one.form in _OPEN and one.fixed is None and not joined

    def _flag(self, one: Parameter) -> Iterator[str]:
        """Write a parameter that is given by a flag."""
        value = self.arguments.get(one.name)
        flag = one.flag or ""
        if value is None:
            return
        match one.form:
            case Form.SWITCH:
                if value:
                    yield flag
                elif one.off:
                    yield one.off
            case Form.COUNT:
                yield from [flag] * int(value)
            case Form.BARE if isinstance(value, bool):
                yield from [flag] * value
            case Form.LIST | Form.REPEATED_LISTS:
                for items in [value] if one.form is Form.LIST else value:
                    yield from self._list(one, items)
            case _:
                for item in value if one.form is Form.REPEAT else [value]:
                    yield from self._joined(one, self._word(one, item))

    def _joined(self, one: Parameter, word: str) -> tuple[str, ...]:
        """Write a flag and its value."""
        flag, grammar = one.flag or "", self.interface.grammar
        if grammar is Grammar.ARGPARSE and word == "--":
            raise ArgumentFaultError(f"`{one.name}` can't be `--`: the script's parser drops it")
        if grammar is Grammar.ARGPARSE or one.joined:
            return (f"{flag}={word}",)
        if flag.startswith("--"):
            return (
                (flag, word) if grammar is Grammar.PLAIN and not word.startswith("-") else (f"{flag}={word}",)
            )
        if grammar is Grammar.NODE or (grammar is Grammar.PLAIN and word.startswith("-")):
            return (f"{flag}{word}",) if word else (flag, word)
        return (flag, word)

    def _list(self, one: Parameter, items: Sequence[Any]) -> tuple[str, ...]:
        """Write a flag and a list behind it."""
        words = [self._word(one, item) for item in items]
        flag = one.flag or ""
        if self.interface.grammar is not Grammar.ARGPARSE:
            return (flag, *words) if words or self.interface.grammar is Grammar.PLAIN else ()
        if len(words) == 1 and one.fixed in {None, 1} and words[0] != "--":
            return (f"{flag}={words[0]}",)
        for word in words:
            if self._looks_like_option(word):
                raise ArgumentFaultError(
                    f"`{word}` in the list `{one.name}` would be read as an option of the script"
                )
            self._from_file(one, word)
        return (flag, *words)

    def _looks_like_option(self, word: str) -> bool:
        if not word.startswith("-") or word == "-":
            return False
        digits = any(one.flag and _NEGATIVE.match(one.flag) for one in self.interface.parameters)
        return digits or not _NEGATIVE.match(word)

    def _from_file(self, one: Parameter, word: str) -> None:
        # argparse would read words from the file that is named: a grant nobody gave, and not what was meant.
        if word[:1] and word[:1] in self.interface.from_file:
            raise ArgumentFaultError(
                f"`{one.name}` can't begin with `{word[0]}`: the script would read a file of that name"
            )

    def _rest(self, one: Parameter, *, first: bool) -> list[str]:
        """Write words as they are."""
        words = [self._word(one, item) for item in self.arguments.get(one.name) or ()]
        strict = self.interface.grammar is Grammar.ARGPARSE and self.interface.complete
        if strict and first and words and words[0].startswith("-"):
            raise ArgumentFaultError(
                f"the first of `{one.name}` can't begin with a dash: the script would take it for an option"
            )
        return words

    def _positions(self, takers: Sequence[Parameter]) -> list[str]:
        """Write the values that have no flag, in their order."""
        groups = [self._position(one) for one in takers]
        last = max((place for place, words in enumerate(groups) if words), default=-1)
        if self.interface.grammar is not Grammar.ARGPARSE:
            groups = [self._filled(one, words) if place < last else words
                      for place, (one, words) in enumerate(zip(takers, groups, strict=True))]  # fmt: skip
        elif not _parts_as(takers, groups):
            groups = [words or self._default(one) if place < last else words
                      for place, (one, words) in enumerate(zip(takers, groups, strict=True))]  # fmt: skip
            if not _parts_as(takers, groups):
                names = ", ".join(f"`{one.name}`" for one in takers)
                raise ArgumentFaultError(
                    f"the script can't tell {names} apart when given like this; give the ones before too"
                )
        return [word for words in groups for word in words]

    def _position(self, one: Parameter) -> list[str]:
        value = self.arguments.get(one.name)
        if value is None:
            return []
        words = [self._word(one, item) for item in (value if one.form is Form.LIST else [value])]
        for word in words:
            self._from_file(one, word)
            if word == "--" and self.interface.grammar is Grammar.ARGPARSE:
                raise ArgumentFaultError(f"`{one.name}` can't be `--`: the script's parser drops it")
        return words

    def _filled(self, one: Parameter, words: list[str]) -> list[str]:
        filled = words or self._default(one)
        if not filled:
            raise ArgumentFaultError(
                f"`{one.name}` must be given too: what is given comes after it on the command line"
            )
        return filled

    def _default(self, one: Parameter) -> list[str]:
        value = one.schema.get("default")
        if value is None or (one.form is Form.LIST) != isinstance(value, list):
            return []
        return [self._word(one, item) for item in (value if isinstance(value, list) else [value])]

    def _word(self, one: Parameter, value: Any) -> str:
        """Write one value as one word."""
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            # argparse calls bool() on the word, which is false for the empty one only.
            python = ("", "True")[value]
            return python if self.interface.grammar is Grammar.ARGPARSE else ("false", "true")[value]
        if isinstance(value, float):
            # argparse takes `-1e-05` for an option and `-0.00001` for a number.
            return (
                str(int(value)) if value.is_integer() and _whole(one) else format(Decimal(repr(value)), "f")
            )
        return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)


def _whole(one: Parameter) -> bool:
    schema = one.schema.get("items", one.schema)
    return bool(schema.get("type") == "integer")


def _parts_as(takers: Sequence[Parameter], groups: Sequence[Sequence[str]]) -> bool:
    """Whether argparse, which matches positions greedily by a regular expression, parts the words as we mean it."""
    # Each takes as much as leaves enough for those behind it. The expression itself could try for ever.
    counts = [_counts(one) for one in takers]
    left, behind = sum(map(len, groups)), sum(least for least, _ in counts)
    for (least, most), words in zip(counts, groups, strict=True):
        behind -= least
        if len(words) != min(most, left - behind) or len(words) < least:
            return False
        left -= len(words)
    return left == 0


def _counts(one: Parameter) -> tuple[int, float]:
    """Return how many words a position takes, the least and the most."""
    if one.form is Form.LIST:
        if one.fixed is not None:
            return one.fixed, one.fixed
        return (1 if one.schema.get("minItems") else 0), math.inf
    return (1 if one.required else 0), 1
