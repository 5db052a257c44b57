"""Tracing: one run whose denials the kernel is asked to tell, where it can."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillrun.problem import Problem, note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillrun.launch.audit import Audit
    from skillrun.launch.denials import Suspect
    from skillrun.sandbox.backend import LaunchPlan


@dataclass(slots=True)
class Trace:
    """What is asked of the kernel about a run; without `audit` nothing is, and `problem` says why if it was wanted."""

    audit: Audit | None = None
    problem: Problem | None = None
    pid: int | None = None

    def marked(self, plan: LaunchPlan) -> LaunchPlan:
        """Return the plan of a run that is told to log its denials."""
        warnings = plan.warnings if self.problem is None else (*plan.warnings, self.problem)
        wire = plan.wire if self.audit is None else {**plan.wire, "traced": True}
        return replace(plan, wire=wire, warnings=warnings)

    def watching(self, told: Callable[[int], None] | None) -> Callable[[int], None] | None:
        """Return what is told the process id of the run, which its records are known by."""
        if self.audit is None:
            return told

        def started(pid: int) -> None:
            self.pid = pid
            if told is not None:
                told(pid)

        return started

    def suspects(self) -> tuple[Suspect, ...]:
        """Give what the kernel has told; call it once nothing of the run is left."""
        if self.audit is None or self.pid is None:
            return ()
        return self.audit.denied(self.pid)


@contextlib.contextmanager
def trace(abi: int, *, wanted: bool) -> Iterator[Trace]:
    """Open the kernel's log for a run if that is wanted; nothing is opened otherwise."""
    if not wanted:
        yield Trace()
        return
    from skillrun.launch.audit import Audit  # noqa: PLC0415 - hardly any run is traced

    opened = Audit.opened(abi)
    if isinstance(opened, str):
        problem = note("trace-unavailable", f"the kernel can't be asked about denials: {opened}")
        yield Trace(problem=problem)
        return
    try:
        yield Trace(opened)
    finally:
        opened.close()
