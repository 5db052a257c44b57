"""Level 1: Landlock, a hardened filter, and a process group nobody can leave."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Final

from skillrun.permissions.capabilities import below, upward
from skillrun.problem import Problem, warning
from skillrun.sandbox.guarantee import Guarantees, State, written
from skillrun.sandbox.linux import rights
from skillrun.sandbox.linux.seccomp import Conditions, assemble
from skillrun.sandbox.linux.split import READ, split
from skillrun.sandbox.policy import Access

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from skillrun.sandbox.backend import Probe
    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Policy

LEVEL: Final = 1


def guarantees(policy: Policy, probe: Probe) -> Guarantees:
    """Answer for each promise at level 1; SECURITY.md names the test that attacks each."""
    scoped = State.ENFORCED if probe.landlock >= rights.SIGNAL_ABI else State.PARTIAL
    return Guarantees(
        fs_read=State.PARTIAL if _below_system(policy, probe) else State.ENFORCED,
        fs_write=written(policy),
        network=State.OPEN if policy.network else State.ENFORCED,
        ipc=scoped,
        processes=State.ENFORCED,
        environment=State.ENFORCED,
        limits=State.ENFORCED,  # memory and processes are watched, file size by the kernel
        names=State.OPEN,  # Landlock does not look at stat, readlink and access
        signals=State.ENFORCED,  # by Landlock's scope, below ABI 6 by a filter that forbids kill()
        network_asked=policy.network,
    )


@functools.lru_cache(maxsize=64)
def base(probe: Probe, *, network: bool) -> str:
    """Write what is the same for every run with this network grant, as JSON: rights, system paths, filter."""
    abi = probe.landlock
    conditions = Conditions(
        machine=probe.machine, level=LEVEL, network=network, signals_scoped=abi >= rights.SIGNAL_ABI
    )
    net = 0 if network else rights.handled("net", abi)
    return json.dumps(
        {
            "level": LEVEL,
            "masks": [rights.handled("fs", abi), net, rights.handled("scope", abi)],
            "system": list(system_rules(probe, network=network)),
            "filter": assemble(conditions).hex(),
        }
    )


def system_rules(probe: Probe, *, network: bool) -> Iterator[list[Any]]:
    """Give the rules for what every run needs from the system, as far as the probe found it."""
    for place in probe.system:
        if network or not place.network:
            yield [place.path, rights.access("device" if place.device else READ, probe.landlock)]


def granted_rules(policy: Policy, landscape: Landscape, abi: int) -> Iterator[list[Any]]:
    """Give the rules for the policy's own paths, each tied to the inode that was surveyed."""
    merged: dict[Path, int] = {}
    for rule in policy.rules:
        # Scratch is the run's own; it lies in a folder that is kept from everybody else.
        kept = () if rule.own else landscape.kept
        if rule.path not in landscape.spots:
            continue
        for path, access in split(rule, kept, landscape):
            merged[path] = merged.get(path, 0) | rights.access(access, abi)
    for path, mask in sorted(merged.items()):
        spot = landscape.spots[path]
        yield [str(path), mask, spot.device, spot.inode]


def warnings(policy: Policy, landscape: Landscape) -> Sequence[Problem]:
    """Say what splitting costs this run."""
    split_roots = [
        rule.path
        for rule in policy.rules
        if rule.path in landscape.entries and (rule.access is Access.WRITE or _hides(landscape, rule.path))
    ]
    return [
        warning(
            "grant-split",
            f"`{root}` is granted entry by entry, because something in it is kept from the script: "
            "nothing can be made or removed directly in it",
            help="grant a sub-folder, or run where user namespaces are allowed (`skillrun doctor`)",
        )
        for root in split_roots
    ]


def _hides(landscape: Landscape, root: Path) -> bool:
    """Tell whether something below a root must not even be read."""
    return any(
        not kept.readable and kept.path in landscape.spots and below(kept.path, root)
        for kept in landscape.kept
    )


def _below_system(policy: Policy, probe: Probe) -> bool:
    """Tell whether something that must not be read lies in what every run may read, which no rule takes back."""
    places = _places(probe)
    hidden = (kept.path for kept in policy.kept if not kept.readable)
    return any(folder in places for path in hidden for folder in upward(path))


@functools.lru_cache(maxsize=8)
def _places(probe: Probe) -> frozenset[str]:
    """Return the paths of the system's places that are no devices."""
    return frozenset(place.path for place in probe.system if not place.device)
