"""The Linux backend: says what this kernel can enforce, and makes the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.permissions.capabilities import below
from skillrun.problem import Problem, error, warning
from skillrun.sandbox.backend import LaunchPlan
from skillrun.sandbox.linux import level1, level2, rights
from skillrun.sandbox.linux.seccomp import ARCHITECTURES
from skillrun.sandbox.policy import Access
from skillrun.sandbox.wire import cwd, wire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.sandbox.backend import Probe
    from skillrun.sandbox.guarantee import Guarantees
    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Policy


@dataclass(frozen=True, slots=True)
class Linux:
    """Landlock and seccomp by the kernel, and namespaces where it allows them.

    `level` 1 or 2 insists on one; 0 takes the best that the probe found.
    """

    level: int = 0

    @property
    def name(self) -> str:
        """The name that `--backend` takes."""
        return f"linux-{self.level}" if self.level else "linux"

    def _level(self, probe: Probe) -> int:
        """Return the level to use on this host."""
        return self.level or (level2.LEVEL if probe.level2 else level1.LEVEL)

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
        if self.level == level2.LEVEL and not probe.level2:
            why = probe.level2_failure or "it was not tried"
            found.append(error("backend-namespaces", f"level 2 does not work on this host: {why}"))
        return tuple(found)

    def splits(self, probe: Probe) -> bool:
        """Level 1 has to grant a folder in parts around what it keeps."""
        return self._level(probe) == level1.LEVEL

    def guarantees(self, policy: Policy, probe: Probe) -> Guarantees:
        """Answer for each promise on this kernel."""
        if self._level(probe) == level1.LEVEL:
            return level1.guarantees(policy, probe)
        return level2.guarantees(policy)

    def render(self, policy: Policy, landscape: Landscape, probe: Probe) -> str:
        """Write the rules one a line: the rights and the path, then what the filter is made for."""
        if self._level(probe) == level2.LEVEL:
            return level2.render(policy, landscape, probe)
        rules = [*level1.system_rules(probe, network=policy.network)]
        rules += level1.granted_rules(policy, landscape, probe.landlock)
        lines = [f"landlock ABI {probe.landlock}, handled {rights.handled('fs', probe.landlock):#06x}"]
        lines += [f"  {mask:#06x} {path}" for path, mask, *_ in rules]
        lines.append(f"seccomp level {level1.LEVEL}, network {'host' if policy.network else 'none'}")
        return "\n".join(lines) + "\n"

    def plan(self, policy: Policy, landscape: Landscape, probe: Probe) -> LaunchPlan:
        """Make the plan for the level of this host."""
        granted = self.guarantees(policy, probe)
        if self._level(probe) == level1.LEVEL:
            rules = list(level1.granted_rules(policy, landscape, probe.landlock))
            return LaunchPlan(
                backend="linux",
                level=level1.LEVEL,
                guarantees=granted,
                base=level1.base(probe, network=policy.network),
                wire={
                    **wire(policy, landscape, mode="group"),
                    "cwd": cwd(policy, landscape),
                    "rules": rules,
                },
                warnings=(*level1.warnings(policy, landscape), *told(policy, landscape)),
            )
        plan = wire(policy, landscape, mode="init", extra_limits=level2.limits(policy, probe))
        return LaunchPlan(
            backend="linux",
            level=level2.LEVEL,
            guarantees=granted,
            base=level2.base(probe, network=policy.network, unix=policy.searched),
            warnings=(*level2.warnings(policy, probe), *told(policy, landscape)),
            wire={**plan, **level2.additions(policy, landscape, probe)},
        )


def told(policy: Policy, landscape: Landscape) -> Iterator[Problem]:
    """Warn of what neither level can do: see `_single_files` and `_kept`."""
    yield from _single_files(policy, landscape)
    yield from _kept(policy, landscape)


def _single_files(policy: Policy, landscape: Landscape) -> Iterator[Problem]:
    """Warn of grants of one file: it is written in place only.

    A rename over it, which is how editors, `sed -i` and most libraries save, needs its folder (EACCES at
    level 1, EBUSY over a mount point at level 2; facts/launcher2, 8).
    """
    for rule in policy.rules:
        spot = landscape.spots.get(rule.path)
        if rule.access is Access.WRITE and spot is not None and not spot.folder:
            yield warning(
                "single-file",
                f"`{rule.path}` is granted for writing as a single file: it can be written in place, not replaced, "
                "so a save by renaming a new file over it fails",
                help="grant its folder if the script saves that way",
            )


def _kept(policy: Policy, landscape: Landscape) -> Iterator[Problem]:
    """Warn of grants that what is kept overrules, and of kept files with other names, which nothing finds."""
    writes = [rule for rule in policy.rules if rule.access is Access.WRITE and rule.path != policy.scratch]
    for kept in landscape.kept:
        spot = landscape.spots.get(kept.path)
        if spot is None:
            continue
        if not spot.folder and not spot.link and spot.names > 1:
            yield warning(
                "second-name",
                f"`{kept.path}` is kept from the script and has {spot.names} names (hard links); another one may be granted",
                help="find them with `find -samefile`",
            )
        for rule in writes:
            if kept.path == rule.path or below(rule.path, kept.path):
                yield warning(
                    "grant-overruled",
                    f"`{rule.path}` is granted for writing and stays as it is: `{kept.path}` must not be changed, "
                    f"because {kept.reason}",
                    help="grant a folder that holds nothing of the kind",
                )
