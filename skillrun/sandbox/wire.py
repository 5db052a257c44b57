"""The part of a launch plan that every Linux run has, confined or not; read by `confine`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Policy

GRACE: Final = 2.0  # seconds between SIGTERM and SIGKILL, DESIGN 9
# <asm-generic/resource.h>; the numbers are the same on x86_64 and aarch64.
_RLIMIT_CPU, _RLIMIT_FSIZE, _RLIMIT_CORE = 0, 1, 4
_CPU_MARGIN: Final = 5  # seconds
_MOST_CPUS: Final = 64  # one process can burn the time of this many before the deadline
# A core limit of 1 byte, not 0: when core_pattern is a pipe the kernel ignores a limit of 0 but refuses 1
# (fs/coredump.c), and either is too small for a file. A core of the script could hold what it was given to read.
_NO_CORE: Final = 1


def wire(
    policy: Policy,
    landscape: Landscape,
    *,
    mode: str,
    extra_limits: Sequence[list[int]] = (),
) -> dict[str, Any]:
    """Write the plan but for where the script starts. `mode` is how the tree is ended, as `confine` knows it."""
    script = policy.script_identity
    identity: list[list[Any]] = [[str(policy.script), script.device, script.inode, script.sha256]]
    if landscape.program is not None:
        identity.append([policy.argv[0], landscape.program.device, landscape.program.inode, None])
    return {
        "mode": mode,
        "timeout": policy.timeout,
        "grace": GRACE,
        "memory": policy.limits.memory,
        "processes": policy.limits.processes,
        "argv": list(policy.argv),
        "env": dict(policy.environ),
        "rlimits": [
            [_RLIMIT_CORE, _NO_CORE],
            [_RLIMIT_FSIZE, int(policy.limits.file_size)],
            # A backstop for one process in case the launcher, which keeps the deadline, is stopped.
            [_RLIMIT_CPU, math.ceil(policy.timeout) * _MOST_CPUS + _CPU_MARGIN],
            *extra_limits,
        ],
        "identity": identity,
    }


def cwd(policy: Policy, landscape: Landscape) -> list[Any]:
    """Write where the script starts, and what lies there."""
    spot = landscape.spots[policy.cwd]
    return [str(policy.cwd), spot.device, spot.inode]
