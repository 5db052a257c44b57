"""Words: what the launcher says about a run, taken only when it makes sense."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from skillrun.confine.words import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

_REASONS: Final = {None, "timed_out", "cancelled", "memory_limit", "process_limit"}
_STATUS: Final = 0xFFFF  # a wait status (wait(2))
_MOST_PID: Final = (
    1 << 22
)  # PID_MAX_LIMIT of <linux/threads.h>; killpg takes no larger number, and fails otherwise


def understood(words: bytes) -> Mapping[str, Any] | None:
    """Return a message of the launcher, None when it is none.

    `leader` and `started` have a process id, of a leader never 1, which no run has; `failed` a stage, an errno or None, and words; `ended` a wait status, a
    reason or None, counts and sizes; `over` is the same, told by an init that is all that is left. A launcher that says anything else is broken, and is not believed.
    """
    try:
        message = parse(words)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    match message.get("event"):
        case "leader":
            right = _whole(message.get("pid"), least=2, most=_MOST_PID)
        case "started":
            right = _whole(message.get("pid"), least=1, most=_MOST_PID)
        case "failed":
            number = message.get("errno")
            right = isinstance(message.get("stage"), str) and isinstance(message.get("message"), str)
            right = right and "errno" in message and (number is None or _whole(number, least=0))
        case "ended" | "over":
            right = _ended(message)
        case _:
            right = False
    return message if right else None


def _ended(message: dict[str, Any]) -> bool:
    status, cpu, reason = message.get("status"), message.get("cpu"), message.get("reason")
    known = "reason" in message and (reason is None or isinstance(reason, str)) and reason in _REASONS
    used = isinstance(cpu, int | float) and not isinstance(cpu, bool) and 0 <= cpu < float("inf")
    counted = all(_whole(message.get(name), least=0) for name in ("leftovers", "rss"))
    # What a limit was passed by is told only then.
    figure = (
        {"memory_limit": "memory", "process_limit": "processes"}.get(reason) if known and reason else None
    )
    passed = figure is None or _whole(message.get(figure), least=0)
    waited = _whole(status, least=0) and int(status or 0) <= _STATUS
    return known and used and counted and passed and waited


def _whole(value: object, *, least: int, most: float = math.inf) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
