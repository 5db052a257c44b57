"""The seam between a policy and whatever enforces it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillrun.problem import Problem
    from skillrun.sandbox.guarantee import Guarantees
    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Policy


@dataclass(frozen=True, slots=True)
class SystemPlace:
    """A path that every run may use besides its grant: read, or as a device; some only with a network."""

    path: str
    device: bool = False
    network: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """What this host can do, as the launcher found it. Data, so that tests can claim any kernel.

    `system` are the paths of `profiles/linux/system.yaml` that exist and are not reached through another
    of them, so that a plan names no more than it needs; `links` are the link nodes among the others.
    `root` says that the caller is uid 0. `level2` was tried out whole; if it failed, `level2_failure` is
    the stage and the errno, and `fresh_proc` says whether a /proc of its own could be mounted. `problems` say what is missing, each with its remedy, when a backend can't be used.
    """

    platform: str
    machine: str
    landlock: int = 0
    seccomp: bool = False
    system: tuple[SystemPlace, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    root: bool = False
    level2: bool = False
    fresh_proc: bool = True
    level2_failure: str | None = None
    problems: tuple[Problem, ...] = ()

    def __hash__(self) -> int:
        """Hash the few fields that tell hosts apart: every run looks up what was made for its probe."""
        return hash((self.machine, self.landlock, self.level2, self.fresh_proc, len(self.system)))


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """What is started and how: `wire` and `base` are what `confine` reads.

    `base` is the part that many runs share, as JSON; it is sent once. None is a run without confinement.
    """

    backend: str
    level: int | None
    guarantees: Guarantees
    wire: Mapping[str, Any]
    base: str | None = None
    warnings: tuple[Problem, ...] = ()


class Backend(Protocol):
    """Turns a policy into a plan. Every method is pure: the host speaks through the probe."""

    @property
    def name(self) -> str:
        """The name that `--backend` takes."""

    def problems(self, probe: Probe) -> tuple[Problem, ...]:
        """Say why this backend can't be used on this host; empty when it can."""

    def splits(self, probe: Probe) -> bool:
        """Say whether a plan needs the entries of folders that hold something kept."""

    def guarantees(self, policy: Policy, probe: Probe) -> Guarantees:
        """Answer for each promise, for this policy on this host."""

    def render(self, policy: Policy, landscape: Landscape, probe: Probe) -> str:
        """Write the policy in the backend's language, for people."""

    def plan(self, policy: Policy, landscape: Landscape, probe: Probe) -> LaunchPlan:
        """Make the plan. Raises ConfigError when the policy can't be expressed."""
