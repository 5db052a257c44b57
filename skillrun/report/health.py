"""Health: what this machine can enforce, for people and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.permissions.grant import Requirement
from skillrun.report import shapes
from skillrun.report.escape import escape
from skillrun.report.running import enforcement
from skillrun.report.showing import View, states
from skillrun.report.text import fold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.sandbox.guarantee import Guarantees


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing that was really tried: whether it went as it must, and what happened in words."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Health:
    """What was found out. `backend`, `level` and `guarantees` are None where nothing confines.

    `limits` are what the level can't do: a name, the limit in words, and the reason.
    """

    platform: str
    backend: str | None
    level: int | None
    guarantees: Guarantees | None
    trials: tuple[Trial, ...]
    remedies: tuple[str, ...]
    limits: tuple[tuple[str, str, str], ...] = ()

    @property
    def confined(self) -> bool:
        """Whether a run can be confined here: it is promised, and every trial agreed."""
        promised = self.guarantees is not None and not self.guarantees.missing(Requirement.CONFINED)
        return promised and all(trial.ok for trial in self.trials)


def shape(health: Health) -> shapes.Shape:
    """Shape it as `doctor/1`."""
    return {
        **shapes.schema("doctor"),
        "platform": health.platform,
        "backend": health.backend,
        "level": health.level,
        "guarantees": shapes.guarantees(health.guarantees),
        "probes": [{"name": trial.name, "ok": trial.ok, "detail": trial.detail} for trial in health.trials],
        "remedies": list(health.remedies),
        "limits": [{"name": name, "what": what, "why": why} for name, what, why in health.limits],
    }


def lines(health: Health, view: View) -> Iterator[str]:
    """Write it for people."""
    yield from view.pair("platform", escape(health.platform), indent="")
    if health.backend is None or health.guarantees is None:
        yield from view.pair("backend", "none that confines", indent="")
    else:
        yield from view.pair(
            "backend", enforcement(health.backend, health.level, health.guarantees), indent=""
        )
        yield ""
        yield view.title("guarantees")
        yield from states(health.guarantees.items(), style=view.style)
    if health.trials:
        yield ""
        yield view.title("tried")
    for trial in health.trials:
        word, colour = ("ok", "green") if trial.ok else ("FAILED", "red")
        text = trial.name.ljust(16) + escape(trial.detail)
        yield from view.pair(word, text, colour, wide=8)
    if health.limits:
        yield ""
        yield view.title(f"what level {health.level} can't do")
        for _, what, why in health.limits:
            yield from fold(escape(f"{what} ({why})"), view.columns, first="  - ", indent="    ")
    if health.remedies:
        yield ""
        yield view.title("what helps")
    for remedy in health.remedies:
        yield from fold(escape(remedy), view.columns, first="  - ", indent="    ")
    yield ""
    verdict, colour = ("scripts are confined here", "green")
    if not health.confined:
        verdict, colour = ("scripts can't be confined here, so skillrun refuses to run them", "red")
    yield from (view.style(line, colour) for line in fold(verdict, view.columns, indent=""))
