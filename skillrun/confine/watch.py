"""Watch how much memory and how many processes a run has, where no kernel limit counts a whole tree.

RLIMIT_AS and RLIMIT_DATA hold for one process each and miss shared memory; RLIMIT_NPROC counts a user,
not a run, and nothing for uid 0 (facts/launcher2, 10). So the tree is looked at every tenth of a second.
What it takes between two looks is not seen: the bound is met with that delay.
"""

from __future__ import annotations

import os

from . import calls, supervise

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from collections.abc import Iterable

PERIOD = 0.1  # seconds between two looks; one costs 1.5 ms for 50 processes
_BACKLOG = 4096  # process ids that dead ones may hold; a machine has 32,768 by default (proc(5), pid_max)
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STATE, _PARENT, _THREADS = 0, 1, 17  # in /proc/PID/stat, counted behind the name (proc(5))
_DEAD = {b"Z", b"X"}


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
    as long as the machine can spare it. The dead that a script's own processes do not wait for count, and so does a
    process whose main thread has ended while others go on: it is a zombie in name only.
    """
    found = waiting = 0
    for pid in pids:
        words = _stat(f"/proc/{pid}")
        if not words:
            continue
        if words[_STATE] in _DEAD and int(words[_THREADS]) <= 1 and int(words[_PARENT]) == reaper:
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


def _memory_files(pids: Iterable[int]) -> int:
    """Return the bytes in memory files (memfd_create) that processes hold open, each file once.

    What is mapped of them is in the resident bytes as well; counting it twice errs on the safe side.
    """
    sizes: dict[tuple[int, int], int] = {}
    for folder in (folder for pid in pids for folder in _tables(pid)):
        try:
            names = os.listdir(f"{folder}/fd")
        except OSError:
            continue
        for name in names:
            path = f"{folder}/fd/{name}"
            try:
                if os.readlink(path).startswith("/memfd:"):
                    found = os.stat(path)
                    sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
            except OSError:
                continue
    return sum(sizes.values())


def _tables(pid: int) -> list[str]:
    """Return where in /proc the tables of descriptors of a process are: one, unless a thread has its own (clone(2))."""
    folders = _threads(pid)
    return [folder for folder in folders if folder == folders[0] or not _same_table(folders[0], folder)]


def _same_table(one: str, other: str) -> bool:
    """Tell whether two threads share their descriptors; a kernel that does not say may show one table twice."""
    first, second = (int(folder.rpartition("/")[2]) for folder in (one, other))
    try:
        return calls.same_descriptors(first, second)
    except OSError:
        return False


def _threads(pid: int) -> list[str]:
    """Return where in /proc the living threads of a process are.

    Of a process whose main thread has ended, /proc/PID itself shows no memory and no descriptors.
    """
    try:
        found = [f"/proc/{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []
    if len(found) == 1:
        return found
    return [folder for folder in found if (words := _stat(folder)) and words[_STATE] not in _DEAD]


def _stat(folder: str) -> list[bytes]:
    """Return what stands in a `stat` of /proc behind the name, which may hold anything; nothing when it is gone."""
    try:
        with open(f"{folder}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _resident(pid: int) -> int:
    """Return the resident bytes of a process, 0 when it is gone."""
    return _pages(f"/proc/{pid}") or max(map(_pages, _threads(pid)), default=0)


def _pages(folder: str) -> int:
    """Return the resident bytes of a process or thread by its folder in /proc, 0 when it has ended."""
    try:
        with open(f"{folder}/statm", "rb") as file:
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
