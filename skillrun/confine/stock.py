"""The stock: leaders made ahead of the runs to come, and what they are made for.

One waits that fits any run with the base of the last one. A second one waits in a world that is built whole, for a run
with the frame of the last one and the scratch folder that comes next: it fits that run alone.
"""

from __future__ import annotations

import os
import select

from . import child
from .leader import Foreseen
from .spare import Spare
from .words import parse

TYPE_CHECKING = False  # importing typing would cost 3 ms of every start
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_MOST_BASES = 64  # they differ by level and network grant; a bound on memory, never met
_MOST_FRAMES = 64  # the oldest goes: a run with it is served as any other
_MOUNTS = "/proc/self/mountinfo"  # becomes urgent with every change of a mount (proc_pid_mountinfo(5))


class Stock:
    """The spares of one launcher, whose death they follow. `poll` is told of each, to hear its word."""

    def __init__(self, launcher: int, poll: select.poll) -> None:
        """Begin with none, and watch the mounts of this host."""
        self._launcher = launcher
        self._poll = poll
        self._bases: dict[int, dict[str, Any]] = {}
        self._frames: dict[int, dict[str, Any]] = {}
        self._key = 0  # of the base that the last run had, in the hope that the next one has it too
        self._foreseen: Foreseen | None = None
        self._spares: dict[int, Spare] = {}  # by the descriptor it is heard by
        self._changes = select.poll()
        try:
            self.mounts = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.mounts = -1  # then no world is built ahead
        else:
            poll.register(self.mounts, select.POLLPRI)
            self._changes.register(self.mounts, select.POLLPRI)

    def learn(self, words: bytes, descriptor: int) -> None:
        """Take a base or a frame that later runs refer to by its number."""
        try:
            known = child.read_plan(descriptor)
            message = parse(words)
            if "frame" in message:
                self._frames[int(message["frame"])] = known
                if len(self._frames) > _MOST_FRAMES:
                    del self._frames[next(iter(self._frames))]
            elif len(self._bases) < _MOST_BASES:
                self._bases[int(message["base"])] = known
        except Exception:  # noqa: BLE001 - one that is bad must not end everybody's runs
            return  # a run that refers to it is refused for that

    def expect(self, terms: dict[str, Any]) -> None:
        """Expect the next run to be like this one, in the scratch folder that it names as the next. Raises KeyError."""
        self._key = int(terms["base"])
        self._foreseen = None
        frame, scratch = terms.get("frame"), terms.get("next")
        if frame in self._frames and scratch is not None and self.mounts >= 0:
            self._foreseen = Foreseen(frame, self._frames[frame], scratch)

    def leaders(self, terms: dict[str, Any]) -> Iterator[Spare]:
        """Give leaders for a run, the one that has least left to do first and a new one last. Raises OSError."""
        if self.mounts >= 0 and self._changes.poll(0):
            self.drop_worlds()
        fitting = [spare for spare in self._spares.values() if spare.fits(terms)]
        # A world may turn out to be one that can't be built ahead, so none is used that has not said it is.
        fitting.sort(key=lambda spare: spare.foreseen is None)
        for spare in fitting:
            if spare.foreseen is None or spare.ready:
                self._let_go(spare)
                if spare.usable():
                    yield spare
                else:
                    spare.drop()
        yield self.new(self._bases[int(terms["base"])], int(terms["base"]))

    def new(self, base: dict[str, Any], key: int, foreseen: Foreseen | None = None) -> Spare:
        """Fork a leader. Raises OSError."""
        return Spare(launcher=self._launcher, key=key, base=base, foreseen=foreseen)

    def restock(self, *, worlds: bool) -> None:
        """Have what the next run is expected to need, built whole if `worlds`; without it that run forks its own."""
        wanted: list[Foreseen | None] = [None]
        if worlds and self._foreseen is not None:
            wanted.insert(0, self._foreseen)
        for spare in list(self._spares.values()):
            if spare.key == self._key and spare.foreseen in wanted:
                wanted.remove(spare.foreseen)
            else:
                self._let_go(spare)
                spare.drop()
        for foreseen in wanted:
            if self._key in self._bases:
                try:
                    made = self.new(self._bases[self._key], self._key, foreseen)
                except Exception:  # noqa: BLE001 - the run that needs this base is told why it can't be used
                    return
                self._spares[made.fileno()] = made
                self._poll.register(made.fileno(), select.POLLIN)

    def hear(self, descriptor: int) -> bool:
        """Take the word of the spare that is heard by a descriptor; return whether there is one."""
        spare = self._spares.get(descriptor)
        if spare is None:
            return False
        self._poll.unregister(descriptor)  # it has one word, and who is dead is reaped
        spare.hear()
        return True

    def drop_worlds(self) -> None:
        """Let go of all that have mounts of their own: something was mounted or unmounted on this host since.

        One that waits for a plan hears of that only where the host's mounts are shared (mount_namespaces(7)), as they are
        not in many containers; and what is unmounted on the host is held by a world as long as that waits.
        """
        for spare in list(self._spares.values()):
            if spare.level > 1:
                self._let_go(spare)
                spare.drop()

    def bury(self, pid: int) -> bool:
        """Forget a spare that is dead; return whether it was one.

        It is not replaced before the next run is over: another one may die of the same.
        """
        for spare in self._spares.values():
            if spare.pid == pid:
                self._let_go(spare)
                spare.drop()
                return True
        return False

    @property
    def pids(self) -> set[int]:
        """The spares that wait."""
        return {spare.pid for spare in self._spares.values()}

    def drop(self) -> None:
        """Let every spare go."""
        for spare in self._spares.values():
            spare.drop()
        self._spares.clear()

    def _let_go(self, spare: Spare) -> None:
        """Take a spare from the list."""
        descriptor = spare.fileno()
        del self._spares[descriptor]
        try:
            self._poll.unregister(descriptor)
        except KeyError:
            pass
