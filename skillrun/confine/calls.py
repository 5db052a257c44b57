"""System calls that Python does not offer, by ctypes; no policy here.

Numbers from 424 on are the same on every architecture; the few older ones stand in a table.
"""

import ctypes
import errno
import os
import struct
import sys

_LIBC = ctypes.CDLL(None, use_errno=True)
# PyDLL keeps the interpreter lock over the call: the child of a raw clone must find it held.
_LOCKED = ctypes.PyDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long
_LOCKED.syscall.restype = ctypes.c_long

MACHINE = os.uname().machine
_NEW_LISTENER = 1 << 3  # SECCOMP_FILTER_FLAG_NEW_LISTENER, Linux 5.0
_WAIT_KILLABLE = 1 << 5  # SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, Linux 5.19
_OLD = {  # <asm/unistd_64.h> and <asm-generic/unistd.h>
    "x86_64": {"clone": 56, "capset": 126, "seccomp": 317, "pivot_root": 155, "kcmp": 312},
    "aarch64": {"clone": 220, "capset": 91, "seccomp": 277, "pivot_root": 41, "kcmp": 272},
}.get(MACHINE, {})
PIVOT_ROOT = _OLD.get("pivot_root", 0)
OPEN_TREE, MOVE_MOUNT, CLOSE_RANGE, MOUNT_SETATTR = 428, 429, 436, 442
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446

# <linux/prctl.h>
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
_KCMP_VM = 1  # <linux/kcmp.h>
_CAPABILITY_VERSION_3 = 0x20080522  # <linux/capability.h>


class CallError(OSError):
    """A system call failed; `strerror` starts with the call's name."""


def checked(result: int, call: str) -> int:
    """Return the result, or raise CallError from errno."""
    if result < 0:
        number = ctypes.get_errno()
        raise CallError(number, f"{call}: {os.strerror(number)}")
    return result


def syscall(number: int, call: str, *arguments: object) -> int:
    """Make a system call by number; ints are passed as long, bytes as pointers."""
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return checked(_LIBC.syscall(ctypes.c_long(number), *words), call)


def prctl(option: int, value: int = 0) -> int:
    """Set or read one thing of this process by prctl, the unused arguments zero as some options demand."""
    zero = ctypes.c_ulong(0)
    return checked(_LIBC.prctl(option, ctypes.c_ulong(value), zero, zero, zero), f"prctl {option}")


def clone(flags: int) -> int:
    """Fork by the bare system call: 0 in the child, the process id in the caller.

    glibc's and Python's fork handlers are skipped. That is sound here, and only here: the caller has
    one thread and holds no lock, and the child soon executes another program. It saves about half of
    what os.fork costs (facts/launcher2, 6).
    """
    zero = ctypes.c_long(0)
    words = (ctypes.c_long(_OLD["clone"]), ctypes.c_long(flags), zero, zero, zero, zero)
    return checked(_LOCKED.syscall(*words), "clone")


def drop_bounding_set() -> None:
    """Drop every capability from the bounding set; without it an exec as uid 0 would get all back (capabilities(7)).

    It takes a capability to do, so it comes before `drop_capabilities`; what is held now stays until then.
    A process that never had CAP_SETPCAP can't do it, and has nothing to get back: no_new_privs follows,
    so no exec gains anything.
    """
    if os.geteuid() == 0 or _has_setpcap():
        for capability in range(_last_capability() + 1):
            prctl(PR_CAPBSET_DROP, capability)


def drop_capabilities() -> None:
    """Give up every capability that is held, for good."""
    zero = ctypes.c_ulong(0)
    ambient = (ctypes.c_ulong(PR_CAP_AMBIENT_CLEAR_ALL), zero, zero, zero)
    checked(_LIBC.prctl(PR_CAP_AMBIENT, *ambient), "prctl clear ambient")
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    syscall(_OLD["capset"], "capset", header, bytes(24))


def _has_setpcap() -> bool:
    """Tell whether CAP_SETPCAP (8) is in the effective set."""
    with open("/proc/self/status", "rb") as status:
        effective = next(line for line in status if line.startswith(b"CapEff:"))
    return bool(int(effective.split()[1], 16) >> 8 & 1)


def _last_capability() -> int:
    """Return the number of the last capability this kernel knows."""
    with open("/proc/sys/kernel/cap_last_cap", "rb") as file:
        return int(file.read())


def close_from(descriptor: int) -> None:
    """Close every descriptor from this one on. Landlock does not look at what is already open."""
    syscall(CLOSE_RANGE, "close_range", descriptor, 0xFFFFFFFF, 0)


def same_memory(one: int, other: int) -> bool:
    """Tell whether two processes have one address space (kcmp(2)). Raises CallError where the kernel does not say."""
    return syscall(_OLD["kcmp"], "kcmp", one, other, _KCMP_VM, 0, 0) == 0


def install_filter(program: bytes) -> None:
    """Load a seccomp filter program (an array of struct sock_filter) for this thread."""
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
    syscall(_OLD["seccomp"], "seccomp", 1, 0, fprog)


def install_listener(program: bytes) -> int:
    """Load a filter program that tells of calls, and return the descriptor they are told on (seccomp_unotify(2)).

    Once a call was told, only what kills its process interrupts it: else a timer would make every open(2) fail.
    """
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
    try:
        return syscall(_OLD["seccomp"], "seccomp", 1, _NEW_LISTENER | _WAIT_KILLABLE, fprog)
    except CallError as problem:
        if problem.errno != errno.EINVAL:
            raise
        return syscall(_OLD["seccomp"], "seccomp", 1, _NEW_LISTENER, fprog)


def landlock_abi() -> int:
    """Return the running kernel's Landlock ABI, 0 when there is none (not built in, or not enabled)."""
    if sys.platform != "linux":
        return 0
    version = int(_LIBC.syscall(ctypes.c_long(LANDLOCK_CREATE), None, ctypes.c_long(0), ctypes.c_long(1)))
    return max(0, version)


def seccomp_usable() -> bool:
    """Tell whether filters can be loaded and the ERRNO and KILL_PROCESS answers exist."""
    if not _OLD:
        return False
    for action in (0x00050000, 0x80000000):  # SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS
        word = struct.pack("=I", action)
        if _LIBC.syscall(ctypes.c_long(_OLD["seccomp"]), ctypes.c_long(2), ctypes.c_long(0), word) != 0:
            return False
    return True
