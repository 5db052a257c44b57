"""Task: what a tool returns when its work goes on without it. The call waits, and no process does."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from skillrun.tools.outcome import Outcome, clean, jsonable, of_value


class Status(enum.Enum):
    """How far a task is. The last three are final."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether nothing more comes."""
        return self in {Status.COMPLETED, Status.FAILED, Status.CANCELLED}


@dataclass(frozen=True)
class Task:
    """Work that goes on elsewhere. Subclass it to refresh and to cancel what it stands for.

    `message` is for people and models, `data` JSON that `Tool.resume` needs, `poll_interval` seconds until it is
    worth looking again. Of a completed task the message is the result; of a failed one it is the error.
    """

    status: Status = Status.WORKING
    message: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    poll_interval: float | None = None
    here: ClassVar[bool] = False
    """Whether the work is in this process, so that no other one can look at it, and dies with it."""

    def __post_init__(self) -> None:
        wait = self.poll_interval
        if wait is not None and not (
            isinstance(wait, int | float) and not isinstance(wait, bool) and math.isfinite(wait) and wait > 0
        ):
            raise ValueError("`poll_interval` is a number of seconds above 0")

    def refresh(self) -> Task:
        """Look at the work, and return the task as it is now. Subclasses say how."""
        return self

    def cancel(self) -> Task:
        """End the work, and return the task as it is then. Subclasses say how."""
        return replace(self, status=Status.CANCELLED)

    def state(self) -> dict[str, Any]:
        """Return the task as JSON data. Raises TypeError for data that is none."""
        if not isinstance(self.data, Mapping):
            raise TypeError("the data of a task is no map")
        return {
            "status": self.status.value,
            "message": clean(self.message) if self.message else "",
            "data": jsonable(dict(self.data)),
            "poll_interval": self.poll_interval,
        }

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Task:
        """Return the task that `state` described."""
        return cls(
            status=Status(state["status"]),
            message=state["message"],
            data=state["data"],
            poll_interval=state["poll_interval"],
        )


def came_of(value: Any) -> Outcome:
    """Return the outcome of what a tool returned: a task that is not over waits, one that is over is its message."""
    if not isinstance(value, Task):
        return of_value(value)
    state = value.state()
    if value.status is Status.COMPLETED:
        return Outcome(clean(value.message), structured=state["data"] or None)
    if value.status.final:
        return Outcome(clean(f"Error ({value.status.value}): {value.message}"), is_error=True)
    return Outcome(clean(f"[{value.status.value}] {value.message}"), waiting=value)
