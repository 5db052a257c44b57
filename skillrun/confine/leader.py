"""What a spare becomes: the leader of a group, or the init of a world; prepared ahead of its plan as far as that goes."""

from __future__ import annotations

import os

from . import calls, child, init, landlock, world

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from typing import Any

_OWN_MOUNTS = "/proc/self/ns/mnt"


class Foreseen:
    """What a world is built for ahead of its run: a frame, by its number, and a scratch folder."""

    def __init__(self, number: int, frame: dict[str, Any], scratch: list[Any]) -> None:
        """Take what the next run is expected to ask for."""
        self.number, self.frame, self.scratch = number, frame, scratch

    def __eq__(self, other: object) -> bool:
        """Tell whether a run that one was foreseen for is a run that the other was foreseen for."""
        return isinstance(other, Foreseen) and self.asked == other.asked

    __hash__ = None  # type: ignore[assignment]

    @property
    def asked(self) -> tuple[int, list[Any]]:
        """What a run names that it fits."""
        return self.number, self.scratch


class Group:
    """The leader of a process group, which becomes the script itself. `pipes` is how many it needs at least."""

    pipes = 3
    mounts: int | None = None

    def __init__(self, base: dict[str, Any]) -> None:
        """Prepare for a base. Raises StepError."""
        child.each(("prepare", child.prepare))
        (self._base,) = child.each(("prepare", lambda: child.Base(base)))

    def lead(self, plan: dict[str, Any], descriptors: list[int], report: int) -> None:
        """Become the script; never returns."""
        child.become(plan, descriptors=descriptors, report=report, base=self._base)


class Init:
    """The init of a world, which starts the script below itself. `mounts` is a descriptor of its mount namespace."""

    pipes = 4  # one more, by which the owner hears of the end

    def __init__(self, base: dict[str, Any], ids: tuple[int, int], foreseen: Foreseen | None) -> None:
        """Prepare for a base, or for the whole of what is foreseen. Raises StepError."""
        self._base = base
        self._foreseen = foreseen
        self._root: world.World
        self.mounts: int | None = None
        child.each(("maps", lambda: world.map_ids(*ids)), ("prepare", self._prepare))
        if foreseen is not None:
            self._settle(foreseen.frame, foreseen.scratch, traced=False)

    def _prepare(self) -> None:
        child.lead(blocked=init.AWAITED)
        # Now: later this process can't be looked into any more (world.hide), nor is /proc of outside there.
        self.mounts = os.open(_OWN_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        self._root = world.World(self._base)
        # Ahead of the plan: it is forty calls, and mounting needs none of what it takes.
        calls.drop_bounding_set()

    def _settle(self, frame: dict[str, Any], scratch: list[Any] | None, *, traced: bool) -> None:
        """Build the world of a run that names this frame and this scratch folder. Raises StepError."""
        init.settle(world.filled(frame, scratch), base=self._base, root=self._root, traced=traced)

    def lead(self, plan: dict[str, Any], descriptors: list[int], report: int) -> None:
        """Start the script in the world that the plan names; never returns. Raises StepError."""
        frame, scratch, foreseen = plan["frame"], plan["scratch"], self._foreseen
        if foreseen is None:
            self._settle(frame, scratch, traced=bool(plan.get("traced")))
        else:
            child.each(("mounts", lambda: _check(plan, foreseen)))
        init.rule_over(plan, descriptors=descriptors, report=report, root=self._root)


def _check(plan: dict[str, Any], foreseen: Foreseen) -> None:
    """Check that a plan is for the world that was built, and that this is still whole."""
    if (plan["frame"], plan["scratch"]) != (foreseen.frame, foreseen.scratch) or plan.get("traced"):
        raise landlock.ChangedError("its world was built for another run")
    world.check_covers(plan["frame"]["entries"])


def prepared(base: dict[str, Any], ids: tuple[int, int], foreseen: Foreseen | None) -> Group | Init:
    """Prepare a leader for a base. Raises StepError."""
    return Group(base) if base["level"] == 1 else Init(base, ids, foreseen)
