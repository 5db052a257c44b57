"""Become a degraded host, then run one confined script: `python host.py MODE WORKSPACE SKILL`, prints one JSON line.

Each mode takes something from this process that a real host lacks; the kernel then answers as that host does.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from pathlib import Path

from skillrun.confine import calls, landlock
from skillrun.host import Host
from skillrun.launch import probing
from skillrun.runner import Runner
from skillrun.sandbox.linux import rights

NEWNS, NEWUSER = 0x00020000, 0x10000000
BIND = 4096
LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {  # x86_64, aarch64
    "clone": (56, 220),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "seccomp": (317, 277),
}
COLUMN = 0 if os.uname().machine == "x86_64" else 1


def number(name: str) -> int:
    """Return a call's number here."""
    return NUMBERS[name][COLUMN]


def filtered(answers: dict[int, int], *, clone_flags: int = 0) -> None:
    """Load a filter as a container engine does: some calls answer an errno."""

    def ins(code: int, true: int, false: int, value: int) -> bytes:
        return struct.pack("=HBBI", code, true, false, value & 0xFFFFFFFF)

    program = [ins(0x20, 0, 0, 0)]
    for call, answer in answers.items():
        program += [ins(0x15, 0, 1, call), ins(0x06, 0, 0, 0x00050000 | answer)]
    if clone_flags:
        program += [ins(0x15, 0, 3, number("clone")), ins(0x20, 0, 0, 16), ins(0x45, 0, 1, clone_flags)]
        program += [ins(0x06, 0, 0, 0x00050000 | 1)]
    program.append(ins(0x06, 0, 0, 0x7FFF0000))
    calls.prctl(calls.PR_SET_NO_NEW_PRIVS, 1)
    calls.install_filter(b"".join(program))


def own_namespace(flags: int) -> None:
    """Enter new namespaces with the same ids."""
    uid, gid = os.getuid(), os.getgid()
    if LIBC.unshare(NEWUSER | flags) < 0:
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def no_namespaces() -> None:
    """As with user.max_user_namespaces=0."""
    own_namespace(0)
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def docker() -> None:
    """As under Docker's default profile: no namespaces, no mounts, clone3 not there."""
    answers = {number(name): 1 for name in ("unshare", "setns", "mount", "umount2", "pivot_root")}
    answers |= dict.fromkeys((428, 429, 430, 431, 432, 433, 442), 1)
    filtered({**answers, 435: 38}, clone_flags=0x7E020000)


def no_mounts() -> None:
    """As where namespaces are allowed, and mounting in them is not."""
    filtered({number("mount"): 1})


def outer_landlock() -> None:
    """As inside another tool's Landlock domain that allows all files."""
    calls.prctl(calls.PR_SET_NO_NEW_PRIVS, 1)
    abi = calls.landlock_abi()
    masks = [rights.handled("fs", abi), 0, 0]
    landlock.restrict(landlock.ruleset({"masks": masks, "system": [["/", masks[0]]]}), [], traced=False)


def masked_proc() -> None:
    """As in a container that covers parts of /proc."""
    own_namespace(NEWNS)
    for target in ("/proc/keys", "/proc/timer_list"):
        if not Path(target).exists():
            continue
        if LIBC.mount(b"/dev/null", target.encode(), None, ctypes.c_ulong(BIND), None) < 0:
            raise OSError(ctypes.get_errno(), target)


def masked_proc_without_true() -> None:
    """As the same on a host whose programs lie elsewhere, and the one that is tried is not there."""
    masked_proc()
    probing._PROGRAM = ["/usr/bin/there-is-none"]


def masked_proc_and_slow() -> None:
    """As where it can't end in time what it tries."""
    masked_proc()
    probing._PROGRAM = ["/bin/sleep", "60"]
    probing._TIMEOUT = 1


def no_landlock() -> None:
    """As on a kernel without Landlock."""
    filtered({444: 38, 445: 38, 446: 38})


def no_seccomp() -> None:
    """As where filters can't be loaded: every use of seccomp(2) fails."""
    filtered({number("seccomp"): 22})


MODES = {
    "whole": lambda: None,
    "no-namespaces": no_namespaces,
    "docker": docker,
    "no-mounts": no_mounts,
    "outer-landlock": outer_landlock,
    "masked-proc": masked_proc,
    "masked-proc-without-true": masked_proc_without_true,
    "masked-proc-and-slow": masked_proc_and_slow,
    "no-landlock": no_landlock,
    "no-seccomp": no_seccomp,
}


def main() -> None:
    """Degrade, run, tell."""
    mode, workspace, skill = sys.argv[1:4]
    MODES[mode]()
    with Runner(workspace=Path(workspace), host=Host(temporary=Path(workspace).parent)) as runner:
        probe = runner.launcher.probe()
        result = runner.run(Path(skill), None, sys.argv[4:])
    told = {
        "level": result.level,
        "termination": result.termination.value,
        "exit": result.exit_code,
        "out": result.stdout.text,
        "err": result.stderr.text,
        "error": result.error and result.error.message,
        "warnings": [one.rule for one in result.warnings],
        "level2": probe.level2,
        "failure": probe.level2_failure,
        "fresh_proc": probe.fresh_proc,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
