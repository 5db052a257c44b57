"""Deciding: the answers of a Seatbelt profile, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skillrun.report import shapes
from skillrun.report.document import name
from skillrun.report.escape import escape
from skillrun.report.text import clip, fold
from skillrun.report.words import spot
from skillrun.sandbox.seatbelt.evaluate import Decision, Evaluator, Tier
from skillrun.sandbox.seatbelt.question import question
from skillrun.sandbox.seatbelt.tables import operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillrun.problem import At
    from skillrun.report.showing import View
    from skillrun.sandbox.seatbelt.model import Rule

_COLOURS: Final = {"allowed": "green", "denied": "red", "unknown": "yellow"}
_NAMES: Final = {
    Tier.FILTERED: "filtered",
    Tier.UNFILTERED: "unfiltered",
    Tier.BUILT_IN: "built-in",
    Tier.NOT_LOADED: "does-not-load",
}


@dataclass(frozen=True, slots=True)
class Decided:
    """One answer, where its rule stands, and the rule that the last match would have taken, if another decision."""

    operation: str
    target: str
    decision: Decision
    at: At | None
    words: str | None
    other: At | None

    @classmethod
    def of(cls, evaluator: Evaluator, operation: str, target: str, given: Mapping[str, Any]) -> Decided:
        """Ask. Raises ValueError for an address that is none."""
        decision = evaluator.decide(operation, target, given)
        source, rule = evaluator.profile.source, decision.rule
        other = _otherwise(evaluator, operation, target, given, decision)
        return cls(
            operation,
            target,
            decision,
            None if rule is None else source.at(rule.span),
            None if rule is None else source.words(rule.made),
            None if other is None else source.at(other.span),
        )

    @property
    def word(self) -> str:
        """The answer in a word; a doubtful one is unknown."""
        if not self.decision.certain:
            return "unknown"
        return "allowed" if self.decision.allowed else "denied"

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        tier = self.decision.tier
        if tier is Tier.NOT_LOADED:
            return "; ".join(["the profile does not load, so nothing would start", *self.decision.doubts])
        by = f"{tier.value}, on `{self.decision.operation}`"
        return "; ".join([by, *self.decision.doubts])


def lines(answers: Iterable[Decided], view: View) -> Iterator[str]:
    """Write each answer with the rule that makes it, its line, and what may be otherwise."""
    for answer in answers:
        word = view.style(answer.word, _COLOURS[answer.word], "bold")
        yield f"{word}: {escape(answer.operation)} {escape(answer.target)}"
        if answer.words is not None:
            yield from view.pair("rule", clip(escape(answer.words), max(view.columns - 12, 20)))
        yield from fold(escape(answer.reason), view.columns, first="  because   ", indent=" " * 12)
        if not answer.decision.certain:
            yield from view.pair("else", "allowed" if answer.decision.allowed else "denied")
        if answer.at is not None:
            yield from view.pair("at", spot(answer.at, view.base))
        if answer.other is not None:
            yield from view.pair("not by", f"{spot(answer.other, view.base)}, the last rule that matches")


def shape(answers: Iterable[Decided]) -> dict[str, Any]:
    """Shape the answers as `explain/1`; `model` is what the model says even where it is not certain."""
    return {
        **shapes.schema("explain"),
        "answers": [
            {
                "target": name(answer.target),
                "resolved": None,
                "access": answer.operation,
                "decision": answer.word,
                "rule": _NAMES[answer.decision.tier],
                "reason": answer.reason,
                "at": [] if answer.at is None else [shapes.place(answer.at)],
                "model": "allowed" if answer.decision.allowed else "denied",
                "text": answer.words,
            }
            for answer in answers
        ],
    }


def _otherwise(
    evaluator: Evaluator, operation: str, target: str, given: Mapping[str, Any], decision: Decision
) -> Rule | None:
    """Return the last rule that matches when it would decide otherwise: many profiles' authors believe in it."""
    known = operations()
    real = known.aliases.get(operation, operation)
    if decision.rule is None or real not in known.parents:
        return None
    last = evaluator.last_match(question(real, target, given))
    return last if last is not None and last.allow is not decision.rule.allow else None
