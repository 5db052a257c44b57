"""Try level 2 out, whole: a version check proves nothing, as some systems refuse at the last step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.launch.capture import Keep
from skillrun.launch.drive import Drive
from skillrun.sandbox.backend import LaunchPlan
from skillrun.sandbox.guarantee import UNCONFINED
from skillrun.sandbox.linux import level2
from skillrun.sandbox.linux.seccomp import ARCHITECTURES

if TYPE_CHECKING:
    from skillrun.launch.launcher import Launcher
    from skillrun.sandbox.backend import Probe

_PROGRAM = ["/usr/bin/true"]  # where there is none, as on NixOS, all but its start was tried
_TIMEOUT = 20.0  # seconds; a try takes about 0.005, and one that is given up on a busy machine costs level 2


def try_level2(launcher: Launcher, probe: Probe) -> Probe:
    """Start a program at level 2 and return the probe with what came of it."""
    if not probe.seccomp or probe.landlock < 1 or probe.machine not in ARCHITECTURES:
        return replace(probe, level2_failure="it needs Landlock and seccomp too")
    usr = Path("/usr/bin").stat()
    wire = {
        "mode": "init",
        "timeout": _TIMEOUT,
        "grace": 0.1,
        "memory": 1 << 40,
        "processes": 64,
        "argv": _PROGRAM,
        "env": {},
        "rlimits": [],
        "identity": [],
        "frame": {
            "cwd": ["/usr/bin", usr.st_dev, usr.st_ino],
            "rules": [],
            "entries": [],
            "links": [],
            "ids": 1 << 10,
            "tmpfs": 1 << 20,
            "user": "user",
            "home": "/",
        },
        "scratch": None,
    }
    plan = LaunchPlan("linux", level2.LEVEL, UNCONFINED, wire, level2.base(probe, network=False))
    with Drive(launcher, plan, b"", Keep(0), Keep(0)).running() as outcome:
        ended = outcome.ended
    # Nobody cancels it; a launcher ends its runs so when it ends itself.
    if ended is None or ended.get("reason") == "cancelled":
        return replace(probe, level2_failure="the launcher died of it")
    if ended["event"] == "failed" and ended["stage"] != "exec":
        return replace(probe, level2_failure=f"stage `{ended['stage']}`: {ended['message']}")
    if "proc" not in ended:  # the first word of an init that has built its world
        return replace(probe, level2_failure=f"nothing had started within {_TIMEOUT:g} s")
    return replace(probe, level2=True, fresh_proc=ended["proc"])
