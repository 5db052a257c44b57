"""Comparing: what two Seatbelt profiles decide differently, for people and for programs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from skillrun.report import shapes
from skillrun.report.document import name
from skillrun.report.escape import escape
from skillrun.report.words import spot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillrun.problem import At
    from skillrun.report.showing import View
    from skillrun.sandbox.seatbelt.difference import Different
    from skillrun.sandbox.seatbelt.evaluate import Decision
    from skillrun.sandbox.seatbelt.model import Profile

_MOST: Final = 4  # targets shown of one operation and one pair of rules


def lines(found: Sequence[Different], before: Profile, after: Profile, view: View) -> Iterator[str]:
    """Write differences by operation; `+` is allowed now and was not, `-` the other way round."""
    ordered = sorted(found, key=lambda one: (one.operation, one.after.allowed, one.target))
    for (operation, allowed), group in itertools.groupby(
        ordered, lambda one: (one.operation, one.after.allowed)
    ):
        listed = list(group)
        sign, colour = ("+", "red") if allowed else ("-", "green")
        for one in listed[:_MOST]:
            doubt = "" if one.before.certain and one.after.certain else "  (not certain)"
            text = f"{sign} {operation} {escape(one.target)}"
            rule = _at(one.after if allowed else one.before, after if allowed else before)
            where = "" if rule is None else f"  by {spot(rule, view.base)}"
            yield view.style(text, colour) + where + doubt
        if len(listed) > _MOST:
            yield f"{sign} {operation} … and {len(listed) - _MOST} more"
    wider = sum(1 for one in found if one.after.allowed)
    if found:
        yield f"{wider} questions are allowed by the second one only, {len(found) - wider} by the first one only"
    else:
        yield "no difference found"


def shape(found: Sequence[Different], before: Profile, after: Profile) -> dict[str, Any]:
    """Shape differences as `profile-diff/1`."""
    return {
        **shapes.schema("profile-diff"),
        "loads": [before.loads, after.loads],
        "differences": [
            {
                "operation": one.operation,
                "target": name(one.target),
                "before": _side(one.before, before),
                "after": _side(one.after, after),
            }
            for one in found
        ],
    }


def _side(decision: Decision, profile: Profile) -> dict[str, Any]:
    return {
        "decision": "allowed" if decision.allowed else "denied",
        "certain": decision.certain,
        "at": shapes.place(_at(decision, profile)),
    }


def _at(decision: Decision, profile: Profile) -> At | None:
    return None if decision.rule is None else profile.source.at(decision.rule.span)
