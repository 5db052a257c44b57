"""Measure things in turn and write ratios."""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Row:
    """One ratio: `what` against `base`, at most `bound` and at least `floor` (None: only reported)."""

    what: str
    base: str
    ratio: float
    bound: float | None
    note: str = ""
    floor: float | None = None

    @property
    def met(self) -> bool:
        """Whether the bounds hold."""
        return (self.bound is None or self.ratio <= self.bound) and (
            self.floor is None or self.ratio >= self.floor
        )

    @property
    def limit(self) -> float | None:
        """The bound or the floor, None without any."""
        return self.bound if self.bound is not None else self.floor


_PAUSE = 0.02  # seconds: what goes on after a thing (a kernel that takes down namespaces, a launcher that forks ahead) is no part of the next


def in_turn(things: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each thing; all are done once in every round, so drift hits all alike.

    In another order each time, the same orders in every run of this: what one leaves to the kernel, such as a network
    namespace that is taken down long after its process, is paid by the next, and must not always be the same one's.
    """
    times: dict[str, list[float]] = {name: [] for name in things}
    for do in things.values():
        do()  # warm caches: the first of anything is not what is compared
    orders = random.Random(0)
    for _ in range(rounds):
        for name in orders.sample(list(things), len(things)):
            do = things[name]
            start = time.perf_counter()
            do()
            times[name].append(time.perf_counter() - start)
            time.sleep(_PAUSE)
    return {name: statistics.median(taken) for name, taken in times.items()}


def one_upon_the_other(do: Callable[[], object], rounds: int) -> float:
    """Return the median seconds of a thing that is done again as soon as it was done."""
    do()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        do()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def table(rows: Sequence[Row]) -> str:
    """Write rows as a Markdown table."""
    lines = ["| what | against | ratio | bound | |", "|---|---|---|---|---|"]
    for row in rows:
        bound = (
            f"≤ {row.bound:g}"
            if row.bound is not None
            else f"≥ {row.floor:g}"
            if row.floor is not None
            else ""
        )
        verdict = "" if row.limit is None else ("met" if row.met else "**missed**")
        note = f" ({row.note})" if row.note else ""
        lines.append(f"| {row.what}{note} | {row.base} | {row.ratio:.2f} | {bound} | {verdict} |")
    return "\n".join(lines)
