"""Tracing: one run of which the kernel is asked to tell what it denies.

Landlock's records say it themselves, where auditing is on and readable. Everywhere else the system calls are told
before they are done, and what the policy denies of that was denied.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillrun.problem import Problem, note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillrun.launch.audit import Audit
    from skillrun.launch.denials import Suspect
    from skillrun.launch.notify import Notify
    from skillrun.sandbox.backend import LaunchPlan, Probe
    from skillrun.sandbox.policy import Policy


@dataclass(slots=True)
class Trace:
    """What is asked of the kernel about a run; nothing when it is not wanted."""

    audit: Audit | None = None
    notify: Notify | None = None
    problem: str | None = None
    pid: int | None = None
    logged: tuple[Suspect, ...] = ()

    def marked(self, plan: LaunchPlan) -> LaunchPlan:
        """Return the plan of a run that is told to log its denials."""
        if self.audit is None and self.notify is None:
            return plan
        wire = plan.wire if self.audit is None else {**plan.wire, "traced": True}
        if self.notify is not None:
            wire = {**wire, "told": self.notify.program.hex()}
        return replace(plan, wire=wire)

    @property
    def told(self) -> Callable[[], int] | None:
        """What gives the socket for the run's listener."""
        return None if self.notify is None else self.notify.take

    def problems(self) -> tuple[Problem, ...]:
        """Return why the kernel told nothing, if it should have; call it once nothing of the run is left."""
        wrong = self.problem if self.notify is None else self.notify.problem
        if wrong is None or self.audit is not None:
            return ()
        return (note("trace-unavailable", f"the kernel can't be asked about denials: {wrong}"),)

    def watching(self, told: Callable[[int], None] | None) -> Callable[[int], None] | None:
        """Return what is told the process id of the run, which its records are known by."""
        if self.audit is None:
            return told

        def started(pid: int) -> None:
            self.pid = pid
            if told is not None:
                told(pid)

        return started

    def suspects(self, plan: LaunchPlan, policy: Policy, probe: Probe) -> tuple[Suspect, ...]:
        """Give what was denied; call it once nothing of the run is left."""
        if self.notify is None:
            return self.logged
        from skillrun.launch.asked import Asking  # noqa: PLC0415 - hardly any run is traced

        asked = Asking(plan, policy, probe).denied(self.notify.asked())
        return tuple(dict.fromkeys((*self.logged, *asked)))


@contextlib.contextmanager
def trace(probe: Probe, *, wanted: bool) -> Iterator[Trace]:
    """Open what the kernel tells of a run if that is wanted; nothing is opened otherwise."""
    if not wanted:
        yield Trace()
        return
    from skillrun.launch.audit import Audit  # noqa: PLC0415 - hardly any run is traced
    from skillrun.launch.notify import Notify  # noqa: PLC0415 - as above

    opened = Audit.opened(probe.landlock)
    made = Trace(None if isinstance(opened, str) else opened)
    try:
        try:
            made.notify = Notify(probe.machine)
        except (OSError, RuntimeError) as wrong:  # descriptors or threads have run out
            made.problem = getattr(wrong, "strerror", None) or str(wrong)
        yield made
        if made.audit is not None and made.pid is not None:
            made.logged = made.audit.denied(made.pid)  # while the log is open
    finally:
        if made.notify is not None:
            made.notify.close()
        if made.audit is not None:
            made.audit.close()
