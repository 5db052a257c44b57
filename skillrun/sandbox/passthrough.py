"""The passthrough: no confinement, and it says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.problem import Problem, warning
from skillrun.sandbox.backend import LaunchPlan
from skillrun.sandbox.guarantee import UNCONFINED, Guarantees
from skillrun.sandbox.wire import cwd, wire

if TYPE_CHECKING:
    from skillrun.sandbox.backend import Probe
    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Policy


@dataclass(frozen=True, slots=True)
class Passthrough:
    """Deadline, tree kill, output bound, scratch and environment hold; nothing else does."""

    name: str = "passthrough"

    def problems(self, probe: Probe) -> tuple[Problem, ...]:  # noqa: ARG002 - one protocol
        """Nothing is missing for doing nothing."""
        return ()

    def splits(self, probe: Probe) -> bool:  # noqa: ARG002 - one protocol
        """Nothing is kept from anybody."""
        return False

    def guarantees(self, policy: Policy, probe: Probe) -> Guarantees:  # noqa: ARG002 - one protocol
        """Answer for each promise: almost none."""
        return UNCONFINED

    def render(self, policy: Policy, landscape: Landscape, probe: Probe) -> str:  # noqa: ARG002 - one protocol
        """Say that there is nothing to show."""
        return "no confinement\n"

    def plan(self, policy: Policy, landscape: Landscape, probe: Probe) -> LaunchPlan:
        """Make the plan: the script runs below a supervisor that can end its tree."""
        reason = (
            policy.unconfined.value
            if policy.unconfined
            else "asked for by --allow-unconfined or `require: none`"
        )
        return LaunchPlan(
            backend=self.name,
            level=None,
            guarantees=self.guarantees(policy, probe),
            wire={**wire(policy, landscape, mode="tree"), "cwd": cwd(policy, landscape)},
            warnings=(warning("unconfined", f"this run is not confined: {reason}"),),
        )
