"""The Linux backend: says what this kernel can enforce, and makes the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.problem import Problem, error
from skillrun.sandbox.backend import LaunchPlan
from skillrun.sandbox.linux import level1, rights
from skillrun.sandbox.linux.seccomp import ARCHITECTURES
from skillrun.sandbox.wire import wire

if TYPE_CHECKING:
    from skillrun.sandbox.backend import Probe
    from skillrun.sandbox.guarantee import Guarantees
    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Policy


@dataclass(frozen=True, slots=True)
class Linux:
    """Landlock and seccomp by the kernel, the process tree by a locked group."""

    name: str = "linux"

    def problems(self, probe: Probe) -> tuple[Problem, ...]:
        """Say why this kernel can't confine a script."""
        found = list(probe.problems)
        if probe.platform != "linux":
            return (
                error("backend-platform", f"the backend `linux` needs Linux, and this is {probe.platform}"),
            )
        if probe.machine not in ARCHITECTURES:
            known = ", ".join(ARCHITECTURES)
            found.append(
                error("backend-machine", f"no system-call filter for {probe.machine}, only for {known}")
            )
        if not probe.seccomp:
            found.append(
                error(
                    "backend-seccomp",
                    "this kernel loads no system-call filters",
                    help="a container may forbid it: allow seccomp(2) in its profile",
                )
            )
        if probe.landlock < rights.LEAST_ABI:
            have = f"has ABI {probe.landlock}" if probe.landlock else "has none"
            found.append(
                error(
                    "backend-landlock",
                    f"Landlock ABI {rights.LEAST_ABI} is needed (Linux 6.2), and this kernel {have}",
                    help="boot with `lsm=landlock,…` if the kernel is new enough; gVisor and old kernels have none",
                )
            )
        return tuple(found)

    def guarantees(self, policy: Policy, probe: Probe) -> Guarantees:
        """Answer for each promise on this kernel."""
        return level1.guarantees(policy, probe)

    def render(self, policy: Policy, landscape: Landscape, probe: Probe) -> str:
        """Write the rules one a line: the rights and the path, then what the filter is made for."""
        rules = [*level1.system_rules(probe, network=policy.network)]
        rules += level1.granted_rules(policy, landscape, probe.landlock)
        lines = [f"landlock ABI {probe.landlock}, handled {rights.handled('fs', probe.landlock):#06x}"]
        lines += [f"  {mask:#06x} {path}" for path, mask, *_ in rules]
        lines.append(f"seccomp level {level1.LEVEL}, network {'host' if policy.network else 'none'}")
        return "\n".join(lines) + "\n"

    def plan(self, policy: Policy, landscape: Landscape, probe: Probe) -> LaunchPlan:
        """Make the plan for level 1."""
        rules = list(level1.granted_rules(policy, landscape, probe.landlock))
        return LaunchPlan(
            backend=self.name,
            level=level1.LEVEL,
            guarantees=self.guarantees(policy, probe),
            base=level1.base(probe, network=policy.network),
            wire=wire(policy, landscape, mode="group", rules=rules),
            warnings=tuple(level1.warnings(policy, landscape)),
        )
