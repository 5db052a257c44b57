"""Automaton: patterns matched in one pass, whatever they are, for those on which backtracking could take for ever.

A profile is other people's text. `(a+)+$` is eight characters and takes Python's engine longer than anybody
waits, so a pattern with more than a little repetition is run as a set of states instead, each step cached.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_MOST_CACHED: Final = 4_000  # steps remembered for one pattern
_MOST_STATES: Final = 5_000
_MOST_NESTING: Final = 50  # groups in groups

Piece = tuple[str, "str | re.Pattern[str]"]
"""One piece of a pattern: `class` with a one-character pattern of Python, or `mark` with one of `^$().|*+?`."""


@dataclass(slots=True)
class _State:
    """A state: where it goes on a character that fits, and where it goes on nothing at all."""

    accepts: re.Pattern[str] | None = None
    after: int = -1
    free: list[tuple[int, str]] = field(default_factory=list)  # state, condition: "" or "^" or "$"


class TooComplex(Exception):  # noqa: N818 - a property of a pattern
    """A pattern beyond what is tried here; a Mac may well take it."""


class NoPattern(Exception):  # noqa: N818 - a property of a pattern
    """A text that is no pattern."""


class Automaton:
    """A pattern, searched anywhere in a text."""

    def __init__(self, pieces: list[Piece]) -> None:
        self._states: list[_State] = []
        self._pieces = pieces
        self._place = 0
        begin, end = self._choice(0)
        if self._place != len(pieces):
            raise NoPattern("a closing parenthesis without an opening one")
        self._begin, self._end = begin, end
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._first = self._closed({begin}, start=True, stop=False)
        self._again = self._closed({begin}, start=False, stop=False)

    def search(self, text: str) -> bool:
        """Tell whether the pattern is found anywhere."""
        states = self._first
        for character in text:
            if self._end in states:
                return True
            key = (states, character)
            following = self._steps.get(key)
            if following is None:
                following = self._step(states, character)
                if len(self._steps) >= _MOST_CACHED:
                    self._steps.clear()
                self._steps[key] = following
            states = following
        return self._end in states or self._end in self._closed(set(states), start=not text, stop=True)

    def _step(self, states: frozenset[int], character: str) -> frozenset[int]:
        reached = set()
        for number in states:
            state = self._states[number]
            if state.accepts is not None and state.accepts.match(character):
                reached.add(state.after)
        return self._closed(reached, start=False, stop=False) | self._again

    def _closed(self, states: set[int], *, start: bool, stop: bool) -> frozenset[int]:
        """Add every state that is reached without a character, at this place of the text."""
        pending = list(states)
        while pending:
            for number, condition in self._states[pending.pop()].free:
                holds = not condition or (start if condition == "^" else stop)
                if holds and number not in states:
                    states.add(number)
                    pending.append(number)
        return frozenset(states)

    def _new(self) -> int:
        if len(self._states) >= _MOST_STATES:
            raise TooComplex("more states than are tried")
        self._states.append(_State())
        return len(self._states) - 1

    def _link(self, state: int, to: int, condition: str = "") -> None:
        self._states[state].free.append((to, condition))

    def _mark(self) -> str | None:
        if self._place < len(self._pieces) and self._pieces[self._place][0] == "mark":
            return str(self._pieces[self._place][1])
        return None

    def _choice(self, depth: int) -> tuple[int, int]:
        """Read alternatives."""
        begin, end = self._new(), self._new()
        while True:
            first, last = self._sequence(depth)
            self._link(begin, first)
            self._link(last, end)
            if self._mark() != "|":
                return begin, end
            self._place += 1

    def _sequence(self, depth: int) -> tuple[int, int]:
        """Read what follows one another."""
        begin = end = self._new()
        while self._place < len(self._pieces) and self._mark() not in {"|", ")"}:
            first, last = self._repeated(depth)
            self._link(end, first)
            end = last
        return begin, end

    def _repeated(self, depth: int) -> tuple[int, int]:
        """Read one thing and what says how often."""
        first, last = self._one(depth)
        mark = self._mark()
        if mark not in {"*", "+", "?"}:
            return first, last
        self._place += 1
        begin, end = self._new(), self._new()
        self._link(begin, first)
        self._link(last, end)
        if mark != "+":
            self._link(begin, end)
        if mark != "?":
            self._link(last, first)
        return begin, end

    def _one(self, depth: int) -> tuple[int, int]:
        """Read a class, an anchor or a group."""
        kind, value = self._pieces[self._place]
        self._place += 1
        if kind == "class":
            begin, end = self._new(), self._new()
            assert isinstance(value, re.Pattern)  # noqa: S101 - see Piece
            self._states[begin].accepts, self._states[begin].after = value, end
            return begin, end
        if value in {"^", "$"}:
            begin, end = self._new(), self._new()
            self._link(begin, end, str(value))
            return begin, end
        if value != "(":
            raise NoPattern(f"`{value}` where something to match is expected")
        if depth > _MOST_NESTING:
            raise TooComplex("groups that nest too deeply")
        first, last = self._choice(depth + 1)
        if self._mark() != ")":
            raise NoPattern("a group that is never closed")
        self._place += 1
        return first, last
