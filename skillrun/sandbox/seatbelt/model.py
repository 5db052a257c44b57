"""Model: a profile as rules, after every form of it was evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillrun.problem import Problem
    from skillrun.sandbox.seatbelt.source import Source, Span


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter of a rule: a condition on what is asked about, or `require-all`, `-any`, `-not` over others.

    `arguments` are its texts, numbers and words. `spliced` says that a parameter went into a pattern without
    `regex-quote`, `parameters` which ones went in at all.
    """

    name: str
    span: Span
    arguments: tuple[str | int, ...] = ()
    children: tuple[Filter, ...] = ()
    spliced: bool = False
    parameters: tuple[str, ...] = ()
    size: int = field(default=1, compare=False)
    """Filters in it, and itself: one that holds another one twice, again and again, is larger than its text."""
    depth: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Modifier:
    """`(with NAME …)`: what else happens. None of them turns an answer round."""

    name: str
    span: Span
    value: str | int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One `allow` or `deny`. `operations` are the language's own names, `written` those of the text.

    `span` is what a reader has to look at: the rule, or the call of the helper that made it; `made` is the
    rule's own text then.
    """

    index: int
    allow: bool
    operations: tuple[str, ...]
    written: tuple[str, ...]
    filters: tuple[Filter, ...]
    modifiers: tuple[Modifier, ...]
    span: Span
    made: Span

    @property
    def decision(self) -> str:
        """The first word of the rule."""
        return "allow" if self.allow else "deny"


@dataclass(frozen=True, slots=True)
class Import:
    """`(import "f.sb")`: rules that are not known here. `index` is its place among the rules."""

    index: int
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Doubt:
    """A form of the profile that depends on what stands in no profile. `operations` of None are all."""

    operations: frozenset[str] | None
    reason: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile that was read. `faults` keep it from being loaded: then it allows nothing, as on a Mac.

    The rules are those that could be made out even so, for an audit. `parameters` are the names that the
    text asks for, with the place of the first time.
    """

    source: Source
    rules: tuple[Rule, ...] = ()
    imports: tuple[Import, ...] = ()
    faults: tuple[Problem, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    parameters: Mapping[str, Span] = field(default_factory=dict)

    @property
    def loads(self) -> bool:
        """Whether sandbox-exec would take it, as far as this reader knows."""
        return not self.faults
