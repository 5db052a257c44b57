"""Finding: a problem of a profile with how sure it is, and the subject that rules look at."""

from __future__ import annotations

import enum
import functools
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from skillrun.problem import Problem, Severity
from skillrun.sandbox.seatbelt.evaluate import Decision, Evaluator
from skillrun.sandbox.seatbelt.tables import operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillrun.sandbox.seatbelt.model import Filter, Profile, Rule
    from skillrun.sandbox.seatbelt.source import Span

USER_HOME: Final = "/Users/you"
"""The home folder that questions are asked about where a profile names none."""
_HOME: Final = re.compile(r"^/Users/[^/*?()\[\]]+(?=/|$)")
MOST_COMPARED: Final = 1_000
_MOST_HOMES: Final = 4
PATH_FILTERS: Final = frozenset({"literal", "subpath", "prefix", "regex"})


class Confidence(enum.Enum):
    """How sure a finding is: high where it was measured on a Mac, low where it may be meant so."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem, whose help is the smallest safe change, and how sure it is."""

    problem: Problem
    confidence: Confidence


@dataclass(frozen=True)
class Limits:
    """What a profile is held against: resolved roots that it may let read and write, and whether the network."""

    read: tuple[str, ...]
    write: tuple[str, ...]
    network: bool


@dataclass(frozen=True)
class Subject:
    """A profile under audit. It is evaluated as if it loaded, whatever its faults."""

    profile: Profile
    limits: Limits | None = None
    evaluator: Evaluator = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "evaluator", Evaluator(replace(self.profile, faults=())))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order of the text."""
        return self.profile.rules

    @property
    def compared(self) -> tuple[Rule, ...]:
        """The rules that are compared with all others, which takes the square of their number."""
        return self.rules[:MOST_COMPARED]

    def filters(self, rule: Rule) -> Iterator[Filter]:
        """Give every filter of a rule, also those inside others."""
        pending = list(rule.filters)
        while pending:
            found = pending.pop(0)
            yield found
            pending += found.children

    def positive(self, rule: Rule) -> Iterator[Filter]:
        """Give the filters of a rule that make it match, those under `require-not` left out."""
        pending = list(rule.filters)
        while pending:
            found = pending.pop(0)
            yield found
            if found.name != "require-not":
                pending += found.children

    @functools.cached_property
    def homes(self) -> tuple[str, ...]:
        """The home folders that the profile names, else a made-up one."""
        found: dict[str, None] = {}
        for rule in self.rules:
            for one in self.filters(rule):
                for text in one.arguments:
                    home = _HOME.match(str(text).lstrip("^"))
                    if home and not home.group().endswith("/Shared"):
                        found[home.group()] = None
        return (*list(found)[:_MOST_HOMES],) or (USER_HOME,)

    def allowing(self, operation: str, target: str) -> Decision | None:
        """Return the decision when it allows and a rule makes it, None otherwise."""
        decision = self.evaluator.decide(operation, target)
        return decision if decision.allowed and decision.rule is not None else None

    def found(
        self,
        rule: str,
        severity: Severity,
        message: str,
        *,
        change: str,
        span: Span | None,
        confidence: Confidence = Confidence.HIGH,
    ) -> Finding:
        """Make a finding at a place of the profile."""
        at = None if span is None else self.profile.source.at(span)
        return Finding(Problem(rule, severity, message, change, at), confidence)


def covers(rule: Rule, operation: str) -> bool:
    """Tell whether a rule is written for an operation or for one above it."""
    return not set(operations().line(operation)).isdisjoint(rule.operations)


def first_of_each_rule(
    subject: Subject, operation: str, targets: Iterable[str]
) -> Iterator[tuple[str, Decision, Rule]]:
    """Ask about targets, and give the first that each rule allows."""
    seen: set[int] = set()
    for target in targets:
        decision = subject.allowing(operation, target)
        if decision is not None and decision.rule is not None and decision.rule.index not in seen:
            seen.add(decision.rule.index)
            yield target, decision, decision.rule
