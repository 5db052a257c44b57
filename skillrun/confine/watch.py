"""Watch how much memory and how many processes a run has, where no kernel limit counts a whole tree.

RLIMIT_AS and RLIMIT_DATA hold for one process each and miss shared memory; RLIMIT_NPROC counts a user,
not a run, and nothing for uid 0 (facts/launcher2, 10). So the tree is looked at every tenth of a second.
What it takes between two looks is not seen: the bound is met with that delay.

A script decides how much there is to see. The one thread of the launcher keeps the clocks of all runs, so
a look is taken a step at a time, and whoever takes it stops when its time is up and goes on later.
"""

from __future__ import annotations

import os
import time
from itertools import islice

from . import calls, supervise
from .status import status

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Finding = tuple[str, int]  # `memory` or `processes`, and what a run has of it

PERIOD = 0.1  # seconds between two looks; one costs 2 ms for 50 processes
_SLICE = 0.02  # seconds that a look may take at once: what is seen in it counts as one moment
_REST = 4  # times as long as it has looked a look rests: what is looked at can't take up the launcher
_AGAIN = 3  # looks in a row after which too many are too many, though none of them stays for long
_BACKLOG = 4096  # process ids that dead ones may hold; a machine has 32,768 by default (proc(5), pid_max)
_PAGE = os.sysconf("SC_PAGE_SIZE")
_OWN = {"group": 0, "init": 1, "tree": 1}  # processes of ours among a run's: an init, a supervisor
MODES = frozenset(_OWN)


class Watch:
    """The looks at one run: `due` is the monotonic time of the next one, or of the rest of one under way."""

    def __init__(self, *, mode: str, memory: float, processes: float) -> None:
        """Take what the run may have, in bytes and processes."""
        self.due = time.monotonic() + PERIOD
        self._mode = mode
        self._memory = memory
        self._most = processes + _OWN[mode]
        self._look: Iterator[Finding | None] | None = None
        self._took = 0.0
        self._slices = 0
        self._crowded = 0  # looks in a row with too many in them, though perhaps not at one moment
        self._heavy = False  # the last look came to too much memory, over more than a moment

    def go_on(self, leader: int) -> Finding | None:
        """Look for a while; return which limit the run is over, and what it has of it."""
        if self._look is None:
            self._look, self._took, self._slices = self._steps(leader), 0.0, 0
        self._slices += 1
        began = now = time.monotonic()
        over, found = True, None
        for found in self._look:
            now = time.monotonic()
            if found is not None or now > began + _SLICE:
                over = found is not None
                break
        if over:
            self._look = None
        took = max(now, time.monotonic()) - began
        self._took += took
        self.due = began + took + (max(PERIOD, _REST * self._took) if self._look is None else _REST * took)
        return found

    def _steps(self, leader: int) -> Iterator[Finding | None]:
        """Look a step at a time: what is over its limit, else None after each step."""
        reaper = os.getpid() if self._mode == "group" else leader
        pids = {leader}
        met = 0  # those alive when they were listed; asked once there were too many
        for pid in members(leader, group=self._mode == "group"):
            if pid is not None and pid not in pids:
                pids.add(pid)
                met += self._crowded and lives(pid, reaper=reaper)
            if len(pids) > self._most + _BACKLOG:  # too many, whoever of them may be dead
                yield "processes", len(pids)
            yield None
        living = pids
        if len(pids) <= self._most:
            self._crowded = 0
        else:
            # Who still lives now that all were listed lived at the end of the list, together with the others.
            living = set()
            for pid in pids:
                if lives(pid, reaper=reaper):
                    living.add(pid)
                yield None
            self._crowded = self._crowded + 1 if not self._crowded or met >= self._most else 0
            if len(living) > self._most or self._crowded > _AGAIN:
                yield "processes", max(len(living), met)
        yield from self._memory_of(tuple(living))

    def _memory_of(self, pids: Sequence[int]) -> Iterator[Finding | None]:
        """Add up memory a step at a time; what took more than a moment has to be so twice.

        Resident pages are cheap to read but count shared ones once for each process, which can be twenty
        times too much; only when they exceed the limit is the proportional share read instead.
        """
        files = 0
        if self._mode == "tree":  # at the other levels the filter lets nobody make one
            sizes: dict[tuple[int, int], int] = {}
            for found in (found for pid in pids for found in _memory_files(pid)):
                if found is not None:
                    sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
                yield None
            files = sum(sizes.values())
        used = files
        for pid in pids:
            used += _resident(pid)
            if used > self._memory:
                break
            yield None
        else:
            self._heavy = False
            return
        used = files
        for pid in pids:
            share = _share(pid, most=2 * self._memory)
            used += share
            if used > self._memory:
                if share > self._memory or self._slices == 1 or self._heavy:
                    yield "memory", used
                self._heavy = True
                return
            yield None
        self._heavy = False


def members(leader: int, *, group: bool) -> Iterator[int | None]:
    """Give the processes below a run's leader and, in a locked group, the orphans of the group; None is a step."""
    yield from supervise.below(leader)
    if group:
        for pid in supervise.children(os.getpid(), os.getpid()):
            try:
                inside = os.getpgid(pid) == leader
            except OSError:
                inside = False
            yield pid if inside else None
            if inside:
                yield from supervise.below(pid)


def lives(pid: int, *, reaper: int) -> bool:
    """Tell whether a process is there, and not just dead and waiting for `reaper`.

    The reaper is ours, and slower than a script that forks and exits all the time: its backlog is not the script's,
    as long as the machine can spare it. The dead that a script's own processes do not wait for count. So does a
    process whose main thread has ended while others go on: it is a zombie in name only.
    """
    known = status(pid)
    if known is None:
        return False
    runs, parent = known
    return runs or parent != reaper


def _places(pid: int) -> Iterator[str]:
    """Give where in /proc a process has its memory and descriptors.

    /proc/PID shows none of one whose main thread has ended; then it is at any other thread, the latest of which may have
    come after the list was read.
    """
    yield f"/proc/{pid}"
    for _ in range(3):
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            return
        if len(threads) == 1:
            return
        yield from (f"/proc/{pid}/task/{thread}" for thread in threads if thread != str(pid))


def _memory_files(pid: int) -> Iterator[os.stat_result | None]:
    """Give the memory files (memfd_create) that a process holds open, None for each descriptor of something else.

    What is mapped of them is in the resident bytes as well; counting it twice errs on the safe side.
    """
    for place in islice(_places(pid), 4):
        try:
            names = os.listdir(f"{place}/fd")
        except OSError:
            continue
        for name in names:
            path = f"{place}/fd/{name}"
            try:
                yield os.stat(path) if os.readlink(path).startswith("/memfd:") else None
            except OSError:
                yield None
        if names:
            return


def _resident(pid: int) -> int:
    """Return the resident bytes of a process, 0 when it is gone."""
    return next(filter(None, map(_pages, _places(pid))), 0)


def _pages(place: str) -> int:
    """Return the resident bytes of a process or thread by its folder in /proc, 0 when it has ended."""
    try:
        with open(f"{place}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _share(pid: int, *, most: float) -> int:
    """Return the proportional share of a process in bytes; its resident bytes where the share can't be read.

    Nor is it where those are more than `most`: it takes 18 ms a GiB, and only who maps the same pages again and again has
    so much more than is there. A child between vfork and exec has its parent's memory, which is counted there.
    """
    known = status(pid)
    if known is None or (_pages(f"/proc/{pid}") and _has_its_parents(pid, known[1])):
        return 0
    resident = _resident(pid)
    if resident > most:
        return resident
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            line = next(line for line in file if line.startswith(b"Pss:"))
        return int(line.split()[1]) * 1024
    except (OSError, IndexError, ValueError, StopIteration):
        return resident


def _has_its_parents(pid: int, parent: int) -> bool:
    """Tell whether a process, whose main thread has memory, has that of its parent; not where the kernel does not say."""
    try:
        return calls.same_memory(pid, parent)
    except OSError:
        return False
