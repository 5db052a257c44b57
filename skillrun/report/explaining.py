"""Explaining: the answers of `explain` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.permissions.explain import Decision
from skillrun.report.escape import escape
from skillrun.report.text import fold
from skillrun.report.words import near, spot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillrun.permissions.explain import Answer
    from skillrun.report.showing import View

_COLOURS: Final = {Decision.ALLOWED: "green", Decision.DENIED: "red", Decision.UNKNOWN: "yellow"}


def lines(answers: Iterable[Answer], view: View) -> Iterator[str]:
    """Write each answer with the rule that makes it and the places behind it."""
    for answer in answers:
        decision = view.style(answer.decision.value, _COLOURS[answer.decision], "bold")
        target = escape(answer.target)
        yield f"{decision}: {answer.access.value} {target}"
        if answer.resolved is not None and escape(answer.resolved) != target:
            yield from view.pair("is", near(answer.resolved, None))
        yield from view.pair("rule", escape(answer.rule))
        yield from fold(escape(answer.reason), view.columns, first="  because   ", indent=" " * 12)
        for at in answer.at:
            yield from view.pair("at", spot(at, view.base))
