"""Guarantees: what a backend promises for one run, and whether that is enough (DESIGN 8)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from skillrun.permissions.grant import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.sandbox.policy import Policy


class State(enum.Enum):
    """How far a guarantee holds."""

    ENFORCED = "enforced"
    PARTIAL = "partial"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Guarantees:
    """One state for each promise. `network_asked` says that an open network is what was granted.

    `signals` is the part of `ipc` that `confined` needs: no signal reaches a process outside.
    """

    fs_read: State
    fs_write: State
    network: State
    ipc: State
    processes: State
    environment: State
    limits: State
    names: State
    signals: State
    network_asked: bool = False

    def items(self) -> Iterator[tuple[str, State]]:
        """Give the guarantees by the names of the JSON shape, in the order of DESIGN 8."""
        for name, attribute in _NAMES.items():
            yield name, getattr(self, attribute)

    def missing(self, requirement: Requirement) -> tuple[str, ...]:
        """Name the guarantees that a requirement needs and that are not enforced."""
        if requirement is Requirement.NONE:
            return ()
        needed = {"fs-read", "fs-write", "network", "environment"}
        if requirement is Requirement.FULL:
            needed |= {"ipc", "processes", "limits"}
        lacking = [name for name, state in self.items() if state is not State.ENFORCED and name in needed]
        if self.network_asked and "network" in lacking:
            lacking.remove("network")
        if self.signals is not State.ENFORCED and "ipc" not in lacking:
            lacking.append("ipc")
        return tuple(lacking)


_NAMES: Final = {
    field.name.replace("_", "-"): field.name
    for field in fields(Guarantees)
    if field.name not in {"signals", "network_asked"}
}


def written(policy: Policy) -> State:
    """Answer for fs-write: only partial where folders to write could not be searched for protected files."""
    alone = policy.write_roots == (policy.scratch,)
    return State.ENFORCED if policy.searched or alone else State.PARTIAL


UNCONFINED = Guarantees(
    fs_read=State.OPEN,
    fs_write=State.OPEN,
    network=State.OPEN,
    ipc=State.OPEN,
    processes=State.PARTIAL,  # a subreaper finds every orphan, but a script that forks fast enough draws it out
    environment=State.ENFORCED,
    limits=State.ENFORCED,  # watched, and file size by the kernel, as at the other levels
    names=State.OPEN,
    signals=State.OPEN,
)
