"""Watch how much memory and how many processes a run has, where no kernel limit counts a whole tree.

RLIMIT_AS and RLIMIT_DATA hold for one process each and miss shared memory; RLIMIT_NPROC counts a user,
not a run, and nothing for uid 0 (facts/launcher2, 10). So the tree is looked at every tenth of a second.
What it takes between two looks is not seen: the bound is met with that delay.
"""

from __future__ import annotations

import os

from . import supervise

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from collections.abc import Iterable

PERIOD = 0.1  # seconds between two looks; one costs 1.5 ms for 50 processes
_BACKLOG = 4096  # process ids that dead ones may hold; a machine has 32,768 by default (proc(5), pid_max)
_PAGE = os.sysconf("SC_PAGE_SIZE")


def members(leader: int, *, group: bool) -> set[int]:
    """Return the processes of a run: those below its leader and, in a locked group, orphans of the group."""
    found = {leader, *supervise.descendants(leader)}
    if group:
        for pid in supervise.children(os.getpid(), os.getpid()):
            try:
                if os.getpgid(pid) == leader:
                    found |= {pid, *supervise.descendants(pid)}
            except OSError:
                continue
    return found


def count(pids: Iterable[int], *, reaper: int) -> int:
    """Count processes of a run, without those that are gone and the dead that `reaper` has not come to yet.

    The reaper is ours, and slower than a script that forks and exits all the time: its backlog is not the script's,
    as long as the machine can spare it. The dead that a script's own processes do not wait for count.
    """
    found = waiting = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                words = file.read().rpartition(b")")[2].split()  # the name before it may hold anything
        except OSError:
            continue
        if words[0] in {b"Z", b"X"} and int(words[1]) == reaper:
            waiting += 1
        else:
            found += 1
    return found + max(0, waiting - _BACKLOG)


def memory(pids: Iterable[int], limit: float) -> int:
    """Return the bytes of memory that processes have together.

    Resident pages are cheap to read but count shared ones once for each process, which can be twenty
    times too much; only when they exceed the limit is the proportional share read instead.
    """
    pids = list(pids)
    files = _memory_files(pids)
    resident = files + sum(_resident(pid) for pid in pids)
    if resident <= limit:
        return resident
    return files + sum(_share(pid) for pid in pids)


def threads(pids: Iterable[int]) -> int:
    """Count the threads of processes: each is a task to the scheduler, as a process is."""
    count = 0
    for pid in pids:
        try:
            count += len(os.listdir(f"/proc/{pid}/task"))
        except OSError:
            continue
    return count


def _memory_files(pids: Iterable[int]) -> int:
    """Return the bytes in memory files (memfd_create) that processes hold open, each file once.

    What is mapped of them is in the resident bytes as well; counting it twice errs on the safe side.
    """
    sizes: dict[tuple[int, int], int] = {}
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for name in names:
            path = f"/proc/{pid}/fd/{name}"
            try:
                if os.readlink(path).startswith("/memfd:"):
                    found = os.stat(path)
                    sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
            except OSError:
                continue
    return sum(sizes.values())


def _resident(pid: int) -> int:
    """Return the resident bytes of a process, 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _share(pid: int) -> int:
    """Return the proportional share of a process in bytes; its resident bytes where the share can't be read."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            line = next(line for line in file if line.startswith(b"Pss:"))
        return int(line.split()[1]) * 1024
    except (OSError, IndexError, ValueError, StopIteration):
        return _resident(pid)
