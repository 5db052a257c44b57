"""Level 2: namespaces and a root of its own, in which what was not granted does not exist."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Final

from skillrun.permissions.capabilities import below
from skillrun.problem import Problem, warning
from skillrun.sandbox.guarantee import Guarantees, State, written
from skillrun.sandbox.linux import rights
from skillrun.sandbox.linux.seccomp import Conditions, assemble
from skillrun.sandbox.policy import Access
from skillrun.sandbox.wire import cwd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from skillrun.sandbox.backend import Probe
    from skillrun.sandbox.landscape import Landscape, Spot
    from skillrun.sandbox.policy import Kept, Policy

LEVEL: Final = 2
WRITE, READ, DENY, NODE, COVER = "rw", "ro", "deny", "link", "cover"
_RLIMIT_NPROC: Final = 6  # <asm-generic/resource.h>
_SPARE_IDS: Final = (
    8192  # process ids for threads, and for the dead that init has not come to (confine/watch.py)
)
_MOST_TMPFS: Final = 1 << 30  # bytes of /tmp and of /dev/shm; they are memory and in no process's share
# The world writes these itself, with the caller's name only.
_OWN_FILES: Final = frozenset({"/etc/passwd", "/etc/group"})


def guarantees(policy: Policy) -> Guarantees:
    """Answer for each promise at level 2; SECURITY.md names the test that attacks each."""
    return Guarantees(
        fs_read=State.ENFORCED,
        fs_write=written(policy),
        network=State.OPEN if policy.network else State.ENFORCED,
        ipc=State.ENFORCED,
        processes=State.ENFORCED,
        environment=State.ENFORCED,
        limits=State.ENFORCED,  # memory is watched, processes by the kernel or watched, file size by the kernel
        names=State.ENFORCED,
        signals=State.ENFORCED,
        network_asked=policy.network,
    )


@functools.lru_cache(maxsize=64)
def base(probe: Probe, *, network: bool, unix: bool = True) -> str:
    """Write what is the same for every run with this network grant, as JSON."""
    abi = probe.landlock
    conditions = Conditions(
        machine=probe.machine,
        level=LEVEL,
        network=network,
        signals_scoped=abi >= rights.SIGNAL_ABI,
        unix=unix,
    )
    return json.dumps(
        {
            "level": LEVEL,
            "network": network,
            # No right over TCP: without a network granted there is only the run's own loopback to talk over.
            "masks": [rights.handled("fs", abi), 0, rights.handled("scope", abi)],
            "filter": assemble(conditions).hex(),
            "places": list(_system(probe, network=network)),
            "devices": [p.path for p in probe.system if p.device and (network or not p.network)],
            "links": [list(link) for link in probe.links],
            "rights": {name: rights.access(name, abi) for name in ("read", "write", "device")},
        }
    )


@functools.lru_cache(maxsize=64)
def _system(probe: Probe, *, network: bool) -> tuple[str, ...]:
    """List the paths of the system that every run can read."""
    usable = (place for place in probe.system if network or not place.network)
    return tuple(place.path for place in usable if not place.device and place.path not in _OWN_FILES)


def limits(policy: Policy, probe: Probe) -> list[list[int]]:
    """Limit the processes by the kernel: in a user namespace the limit counts this run alone.

    It has no effect for uid 0 outside, whatever the uid inside; there the watch counts.
    """
    return [] if probe.root else [[_RLIMIT_NPROC, int(policy.limits.processes) + 1]]


def warnings(policy: Policy, probe: Probe) -> Iterator[Problem]:
    """Say what this run does without."""
    if not policy.searched:
        yield warning(
            "unix-sockets-denied",
            "the granted folders have too many entries to look for other programs' sockets in them, so the "
            "script can use no unix sockets",
            help="grant a smaller folder",
        )
    if not probe.fresh_proc:
        yield warning(
            "proc-shared", "/proc shows the process numbers of this machine, but nothing of the processes"
        )


def entries(policy: Policy, landscape: Landscape, *, system: Sequence[str] = ()) -> dict[Path, str]:
    """Give what is mounted where, parents first.

    `rw`, `ro`, `deny`, `cover` or, for a link that is kept and leads to a file that may be read, `link` for each path.

    Covering a kept path is not enough inside a writable folder: its parent could be renamed and a new
    one put in its place, with the cover travelling along. So every folder between is mounted onto
    itself, which makes it busy (facts/launcher2, 3).
    """
    existing = [kept for kept in landscape.kept if kept.path in landscape.spots]
    marks = _roots(policy, existing, landscape)
    roots = tuple(marks)
    for kept in sorted(existing, key=lambda entry: len(entry.path.parts)):
        over = [root for root in roots if below(kept.path, root)]
        if over:
            for folder in reversed(kept.path.parents):
                if any(below(folder, root) for root in over) and _mode(marks, folder) == WRITE:
                    marks.setdefault(folder, WRITE)
            if not kept.readable:
                # What holds something of the run's own is covered with an empty folder that leads there.
                marks[kept.path] = COVER if any(below(root, kept.path) for root in roots) else DENY
            elif _mode(marks, kept.path.parent) == WRITE and kept.path != policy.scratch:
                marks[kept.path] = NODE if landscape.spots[kept.path].link else READ
    for path in [path for path, mode in marks.items() if mode == NODE]:
        if path not in landscape.ends or not _in_reach(*landscape.ends[path], marks, system):
            marks[path] = DENY
    return dict(sorted(marks.items(), key=lambda mark: (len(mark[0].parts), mark[0])))


def _in_reach(end: Path, spot: Spot, marks: dict[Path, str], system: Sequence[str]) -> bool:
    """Tell whether a run can read what a link leads to: that is put over it, and a script can have made it lead anywhere."""
    mode = _mode(marks, end)
    shared = mode is None and any(f"{end}/".startswith(f"{place}/") for place in system)
    return spot.regular and (shared or mode in {READ, WRITE})


def _roots(policy: Policy, existing: Sequence[Kept], landscape: Landscape) -> dict[Path, str]:
    """Give the policy's own paths; something kept at or above one decides about the whole of it."""
    marks: dict[Path, str] = {}
    for rule in policy.rules:
        if rule.path not in landscape.spots:
            continue
        above = [k for k in existing if k.path == rule.path or below(rule.path, k.path)]
        if rule.own or not above:
            marks[rule.path] = WRITE if rule.access is Access.WRITE else READ
        elif all(kept.readable for kept in above):
            marks[rule.path] = READ
    return marks


def _mode(marks: dict[Path, str], path: Path) -> str | None:
    """Return how a path comes out: by its own mark or the nearest above it."""
    return marks.get(path) or next((marks[place] for place in path.parents if place in marks), None)


def additions(policy: Policy, landscape: Landscape, probe: Probe) -> dict[str, Any]:
    """Write the parts of a plan that only level 2 has: the world's own, without and with the run's scratch folder.

    The frame is the same for the next run with this grant, so that its world can be built ahead of it. In it an empty
    path stands for the scratch folder.
    """
    marks = entries(policy, landscape, system=_system(probe, network=policy.network))
    spotted = list(_spotted(marks, landscape, policy.scratch))
    scratch = landscape.spots.get(policy.scratch)  # a plan that is only shown may have none
    environ = dict(policy.environ)
    home = environ.get("HOME", "/")
    frame = {
        # A folder to start in of which nothing was granted is an empty one of that name, and has no identity.
        "cwd": cwd(policy, landscape) if _mode(marks, policy.cwd) else [str(policy.cwd), 0, 0],
        "entries": [list(entry) for entry in spotted],
        "links": [[str(path), target] for path, target in sorted(landscape.links.items())],
        "ids": int(policy.limits.processes) + _SPARE_IDS,
        "tmpfs": int(min(policy.limits.memory, _MOST_TMPFS)),
        "user": environ.get("USER", "user"),
        "home": "" if home == str(policy.scratch) else home,
        "rules": [
            [path, rights.access("write", probe.landlock), device, inode]
            for path, mode, device, inode, *_ in spotted
            if mode == WRITE
        ],
    }
    return {
        "frame": frame,
        "scratch": scratch and [str(policy.scratch), scratch.device, scratch.inode],
    }


def _spotted(marks: dict[Path, str], landscape: Landscape, scratch: Path) -> Iterator[tuple[str | int, ...]]:
    """Give each mark with the device and inode that were surveyed, but for the scratch folder; of a link its end as well.

    Of what is covered also when it was changed: a world that was built before that is another one, even where the numbers
    are the same. A granted folder, and the end of a link, is held by its world, so its number is nobody else's.
    """
    for path, mode in marks.items():
        if path == scratch:
            yield "", mode, 0, 0, 0
            continue
        spot = landscape.spots.get(path) or landscape.pins[path]
        held = mode == WRITE or (mode == READ and (spot.folder or path not in landscape.present))
        entry = (str(path), mode, spot.device, spot.inode, 0 if held else spot.changed)
        if mode != NODE:
            yield entry
            continue
        end, there = landscape.ends[path]
        yield *entry, str(end), there.device, there.inode


def render(policy: Policy, landscape: Landscape, probe: Probe) -> str:
    """Write the root one place a line."""
    shared = json.loads(base(probe, network=policy.network))
    lines = ["a root of its own, with"]
    lines += [f"  ro    {path}" for path in shared["places"]]
    lines += [f"  dev   {path}" for path in shared["devices"]]
    marks = entries(policy, landscape, system=shared["places"])
    lines += [f"  {mode:<5} {path}" for path, mode in marks.items()]
    lines.append("  own   /tmp /dev/shm /dev/pts /proc /etc/passwd /etc/group")
    return "\n".join(lines) + "\n"
