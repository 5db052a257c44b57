"""Remedies: what would give this host a better level, each host in its own words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.sandbox.linux import rights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.sandbox.backend import Probe

_LANDLOCK_KERNEL: Final = (6, 2)  # the first with ABI 3
_CONTAINER = (
    "this is a container ({container}), whose system-call profile forbids {what}: start it with one that allows "
    "{calls}, or run skillrun on the host"
)


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What a host says of itself; None where it says nothing.

    `userns_limit` is user.max_user_namespaces, `userns_allowed` Debian's kernel.unprivileged_userns_clone,
    `apparmor_userns` Ubuntu's kernel.apparmor_restrict_unprivileged_userns, `modules` the list of security
    modules. `python` is the interpreter that the launcher runs in.
    """

    release: str
    python: str
    userns_limit: int | None = None
    userns_allowed: int | None = None
    apparmor_userns: int | None = None
    modules: str | None = None
    container: str | None = None
    gvisor: bool = False


def remedies(probe: Probe, facts: HostFacts) -> Iterator[str]:
    """Say what to do about a missing level 2, and about what even level 1 lacks. Empty when nothing is missing."""
    if facts.gvisor:
        yield (
            "gVisor answers system calls itself and has no Landlock: run skillrun on the host, or let a run be "
            "unconfined inside gVisor's own sandbox with `require: none`"
        )
        return
    if probe.landlock < rights.LEAST_ABI:
        yield _landlock(facts)
    if not probe.seccomp:
        yield _container(facts, "system-call filters", "seccomp(2)") or (
            "build or boot a kernel with CONFIG_SECCOMP_FILTER"
        )
    if not probe.level2:
        yield _namespaces(probe, facts)


def _landlock(facts: HostFacts) -> str:
    """Say how to get Landlock."""
    if _version(facts.release) < _LANDLOCK_KERNEL:
        return f"this kernel is {facts.release}, and Landlock is whole enough from Linux 6.2 on: upgrade it"
    if facts.modules is not None and "landlock" not in facts.modules.split(","):
        return f"Landlock is not started: boot with `lsm=landlock,{facts.modules}`"
    return _container(facts, "Landlock", "landlock_create_ruleset(2) and its two relatives") or (
        "build the kernel with CONFIG_SECURITY_LANDLOCK and boot it with `lsm=landlock,…`"
    )


def _namespaces(probe: Probe, facts: HostFacts) -> str:
    """Say how to get user namespaces, without which there is level 1 only."""
    if facts.userns_limit == 0:
        return "user namespaces are limited to none: `sysctl -w user.max_user_namespaces=10000` gives level 2"
    if facts.userns_allowed == 0:
        return "user namespaces are for root only here: `sysctl -w kernel.unprivileged_userns_clone=1` gives level 2"
    if facts.apparmor_userns and not probe.root:
        return (
            "Ubuntu's AppArmor lets a user namespace be made and then forbids what it is for. For level 2 write "
            f"`/etc/apparmor.d/skillrun` with `abi <abi/4.0>, profile skillrun {facts.python} flags=(unconfined) "
            "{ userns, }` and load it with `apparmor_parser -r`; it then holds for everything this Python runs"
        )
    calls = (
        "clone and unshare with CLONE_NEW* flags, mount, open_tree, move_mount, mount_setattr and pivot_root"
    )
    contained = _container(facts, "namespaces", calls)
    return contained or f"level 2 failed at {probe.level2_failure or 'an unknown step'}; level 1 is used"


def _container(facts: HostFacts, what: str, calls: str) -> str | None:
    """Say what a container has to allow, None outside one."""
    if facts.container is None:
        return None
    return _CONTAINER.format(container=facts.container, what=what, calls=calls)


def _version(release: str) -> tuple[int, int]:
    """Return the first two numbers of a kernel release; (0, 0) when it has none."""
    match = re.match(r"(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match else (0, 0)
