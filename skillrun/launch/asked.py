"""Asked: what a traced run asked the kernel for, and what of that its policy denies.

The script is never said to be denied what any process would have been: a name that it made twice, or that is not there.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.launch.denials import KERNEL, MOST, NETWORK, Suspect, permitted
from skillrun.launch.physical import Walk
from skillrun.permissions.capabilities import inside

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillrun.sandbox.backend import LaunchPlan, Probe
    from skillrun.sandbox.linux.telling import Way
    from skillrun.sandbox.policy import Policy

_PATIENCE: Final = 2.0  # seconds of looking: a script can ask without end for what takes long to look up
_WORLD: Final = 2  # the level with a root of its own
# What a run has of its own under a name that this host uses for something else: at every level, and at that one.
_OWN: Final = tuple(
    map(Path, ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"))
)
_OWN_WORLD: Final = tuple(map(Path, ("/dev", "/etc/passwd", "/etc/group")))
_TEMPORARY: Final = (Path("/tmp"), Path("/dev/shm"))  # noqa: S108 - the names of a world's own folders


@dataclass(frozen=True, slots=True)
class Asked:
    """What a system call asked for: an absolute path and what is done there, or None and None for the network."""

    path: str | None = None
    way: Way | None = None


@dataclass(frozen=True, slots=True)
class Asking:
    """One run's asking, judged in the order in which it was done; `made` is what it wrote to temporary folders of its own."""

    plan: LaunchPlan
    policy: Policy
    probe: Probe
    walk: Walk = field(default_factory=Walk.here)
    made: set[Path] = field(default_factory=set)

    def denied(self, asked: Iterable[Asked]) -> tuple[Suspect, ...]:
        """Keep what the policy denies and the caller could do, each once; MOST at most."""
        found: dict[Suspect, None] = {}
        last = time.monotonic() + _PATIENCE
        for one in asked:
            sure = self._network() if one.path is None or one.way is None else self._sure(one.path, one.way)
            if sure is not None:
                found[sure] = None
            if len(found) >= MOST or time.monotonic() > last:
                break
        return tuple(found)

    def _network(self) -> Suspect | None:
        return None if self.policy.network else Suspect(NETWORK, None, KERNEL)

    def _sure(self, path: str, way: Way) -> Suspect | None:
        """Return what was asked for with its physical path, None where the run got it or nobody would have."""
        try:
            physical = self.walk.to(path, follows=way.follows)
            if physical is None or self._own(Path(path), physical, way) or not self._kept(physical, way):
                return None
        except (OSError, ValueError):
            return None
        return Suspect("write" if way.writes else "read", physical, KERNEL)

    def _kept(self, physical: Path, way: Way) -> bool:
        """Whether the policy keeps it from the run, and nothing else does.

        Raises OSError and ValueError where it can't be looked up.
        """
        there = os.path.lexists(physical)
        if way.there and not there:
            return False
        reads, writes = permitted(self.policy, physical, self.probe)
        if writes if way.writes else reads:
            return False
        if way.there is False and there and self._sees(physical, reads=reads):
            return False
        # A name is made and removed in its folder; what is changed is the file.
        target = physical if there and way.follows else physical.parent
        return os.access(target, os.W_OK if way.writes else os.R_OK)

    def _sees(self, physical: Path, *, reads: bool) -> bool:
        """Whether a name of this host is there for the run, too: a world has only what is granted, and what leads to it."""
        world = self.plan.level == _WORLD
        return not world or reads or any(physical in rule.path.parents for rule in self.policy.rules)

    def _own(self, path: Path, physical: Path, way: Way) -> bool:
        """Whether the run has something of its own under this name, and so asked for nothing of this host."""
        world = self.plan.level == _WORLD
        for place in (*_OWN, *(_OWN_WORLD if world else ())):
            if inside(path, place) or inside(physical, place):
                return True
        temporary = any(inside(physical, place) for place in _TEMPORARY)
        if not world or not temporary or any(inside(physical, rule.path) for rule in self.policy.rules):
            return False
        if way.writes:
            self.made.add(physical)
            return True
        return not self.made.isdisjoint((physical, *physical.parents))
