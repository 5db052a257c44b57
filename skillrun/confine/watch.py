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

from . import supervise

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PERIOD = 0.1  # seconds between two looks; one costs 1.5 ms for 50 processes
_SLICE = 0.004  # seconds that a look may take at once
_REST = 4  # times as long as it has looked a look rests: what is looked at can't take up the launcher
_BACKLOG = 4096  # process ids that dead ones may hold; a machine has 32,768 by default (proc(5), pid_max)
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STATE, _PARENT, _THREADS = 0, 1, 17  # in /proc/PID/stat, counted behind the name (proc(5))
_DEAD = {b"Z", b"X"}
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
        self._look: Iterator[tuple[str, int] | None] | None = None
        self._took = 0.0

    def go_on(self, leader: int) -> tuple[str, int] | None:
        """Look for a while; return which limit the run is over, `memory` or `processes`, and what it has of it."""
        if self._look is None:
            self._look, self._took = self._steps(leader), 0.0
        began = now = time.monotonic()
        found = None
        for found in self._look:
            now = time.monotonic()
            if found is not None or now > began + _SLICE:
                break
        else:
            self._look = None
        took = max(now, time.monotonic()) - began
        self._took += took
        self.due = began + took + (max(PERIOD, _REST * self._took) if self._look is None else _REST * took)
        return found

    def _steps(self, leader: int) -> Iterator[tuple[str, int] | None]:
        """Look a step at a time: what is over its limit, else None after each step.

        Whoever is found alive after all were listed was alive at that moment, together with the others.
        """
        pids = {leader}
        for pid in members(leader, group=self._mode == "group"):
            if pid is not None:
                pids.add(pid)
            if len(pids) > self._most + _BACKLOG:  # too many, whoever of them may be dead
                yield "processes", len(pids)
            yield None
        living = []
        for pid in pids:
            place = lives(pid, reaper=os.getpid() if self._mode == "group" else leader)
            if place is not None:
                living.append(place)
            yield None
        if len(living) > self._most:
            yield "processes", len(living)
        yield from self._memory_of(living)

    def _memory_of(self, places: Sequence[str]) -> Iterator[tuple[str, int] | None]:
        """Add up memory a step at a time.

        Resident pages are cheap to read but count shared ones once for each process, which can be twenty
        times too much; only when they exceed the limit is the proportional share read instead.
        """
        files = 0
        if self._mode == "tree":  # at the other levels the filter lets nobody make one
            sizes: dict[tuple[int, int], int] = {}
            for found in (found for place in places for found in _memory_files(place)):
                if found is not None:
                    sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
                yield None
            files = sum(sizes.values())
        for measure in (_resident, _share):
            used = files
            for place in places:
                used += measure(place)
                yield None
            if used <= self._memory:
                return
        yield "memory", used


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


def lives(pid: int, *, reaper: int) -> str | None:
    """Return where in /proc to read what a process has; None when it is gone, or dead and `reaper` has yet to come to it.

    The reaper is ours, and slower than a script that forks and exits all the time: its backlog is not the script's,
    as long as the machine can spare it. The dead that a script's own processes do not wait for count. So does a
    process whose main thread has ended while others go on: it is a zombie in name only, and /proc/PID itself shows
    neither memory nor descriptors of it.
    """
    place = f"/proc/{pid}"
    try:
        with open(f"{place}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()  # the name before it may hold anything
        if words[_STATE] not in _DEAD:
            return place
        if int(words[_THREADS]) > 1:
            other = next(thread for thread in os.listdir(f"{place}/task") if thread != str(pid))
            return f"{place}/task/{other}"
    except (OSError, StopIteration):
        return None
    return None if int(words[_PARENT]) == reaper else place


def _memory_files(place: str) -> Iterator[os.stat_result | None]:
    """Give the memory files (memfd_create) that a process holds open, None for each descriptor of something else.

    What is mapped of them is in the resident bytes as well; counting it twice errs on the safe side.
    """
    try:
        names = os.listdir(f"{place}/fd")
    except OSError:
        return
    for name in names:
        path = f"{place}/fd/{name}"
        try:
            yield os.stat(path) if os.readlink(path).startswith("/memfd:") else None
        except OSError:
            yield None


def _resident(place: str) -> int:
    """Return the resident bytes of a process, 0 when it is gone."""
    try:
        with open(f"{place}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _share(place: str) -> int:
    """Return the proportional share of a process in bytes; its resident bytes where the share can't be read."""
    try:
        with open(f"{place}/smaps_rollup", "rb") as file:
            line = next(line for line in file if line.startswith(b"Pss:"))
        return int(line.split()[1]) * 1024
    except (OSError, IndexError, ValueError, StopIteration):
        return _resident(place)
