"""Scratches: the life of the scratch folders of all runs, from the launcher's folder to the last removal."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from typing import TYPE_CHECKING

from skillrun import resources
from skillrun.confine.trees import remove_root
from skillrun.errors import SkillError
from skillrun.launch.faults import named
from skillrun.launch.scratch import RUNS, furnish, make_scratch, remove_scratch
from skillrun.sandbox.environment import OUTPUT
from skillrun.skills.interpreter import find_interpreter
from skillrun.skills.model import Command, Starter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skillrun.launch.launcher import Launcher
    from skillrun.launch.session import Session

    State = tuple[tuple[int, int, object], ...]
    Place = tuple[str, int, int]  # a path, its device and its inode

# The one that the next run has is named in the request of the one before it, so it is made during the one before that.
_AHEAD = 2


class Scratches:
    """Makes scratch folders in the folder of a launcher that lives, and removes them. Thread-safe."""

    def __init__(self, launcher: Launcher | Session) -> None:
        self._launcher = launcher
        self._furnished: Path | None = None
        self._unremoved: deque[Path] = deque()
        self._ahead: deque[tuple[Path, State | None]] = deque()
        self._making = threading.Lock()

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Give a scratch folder and remove it, whatever the script made of it.

        Raises LauncherError when none can be made, or when the launcher that it belongs to is lost.
        """
        self._try_again()
        root = self._launcher.folder()
        try:
            if self._furnished != root:  # a new launcher has a new folder
                furnish(root, self._python())
                self._furnished = root
            made = self._take(root / RUNS)
        except OSError as problem:
            raise self._launcher.unusable(root, problem) from problem
        try:
            with named(made):
                yield made
        finally:
            self._remove(made)

    def make_ahead(self) -> None:
        """Make the folders of the next runs while this one is under way; where that fails, the next run says why.

        It is no run's yet, and goes with the launcher's folder when there is no next one. Never waits: the run that is
        under way does.
        """
        root = self._furnished
        # Of several threads one does it. What another one held at a fork is held for ever in the copy, which then makes none.
        if root is None or len(self._ahead) >= _AHEAD or not self._making.acquire(blocking=False):
            return
        try:
            with contextlib.suppress(OSError):
                while len(self._ahead) < _AHEAD:
                    made = make_scratch(root / RUNS)
                    if not self._launcher.keeps(root):
                        # It came into a folder that was being removed, which may be why that stays.
                        remove_root(str(root))
                        return
                    self._ahead.append((made, _state(made)))
        finally:
            self._making.release()

    @property
    def ahead(self) -> tuple[Path, ...]:
        """The folders that were made for runs to come."""
        return tuple(path for path, _ in self._ahead)

    @property
    def upcoming(self) -> Place | None:
        """The folder that the next run will have, if it is there and nobody comes between."""
        with contextlib.suppress(IndexError):  # another thread may take it
            path, state = self._ahead[0]
            if state is not None:
                return str(path), *state[0][:2]
        return None

    def _take(self, root: Path) -> Path:
        """Return a scratch folder in a root: one that was made ahead, else a new one."""
        with contextlib.suppress(IndexError):  # another thread may take it
            made, state = self._ahead.popleft()
            # Another launcher's goes with that, and may be in use: where this process is a forked copy.
            if made.parent == root:
                # A cleaner of the temporary folder may have found it old. Or somebody has been in it: an unconfined run, or a
                # run of another runner that may write there.
                if state is not None and _state(made) == state:
                    return made
                self._remove(made)
        return make_scratch(root)

    def _remove(self, made: Path) -> None:
        """Remove a folder, now or later."""
        if not remove_scratch(made):  # without a free descriptor, for one
            self._unremoved.append(made)

    def _try_again(self) -> None:
        """Remove what could not be removed when its run was over; what stays is tried again, each once a run."""
        with contextlib.suppress(IndexError):  # another thread may take the last one
            for _ in range(len(self._unremoved)):
                left = self._unremoved.popleft()
                if not remove_scratch(left):
                    self._unremoved.append(left)

    def _python(self) -> Path | None:
        """Return the Python that `bin/python` beside scratch leads to, where the system has no `python` itself."""
        folders = resources.table("linux/system")["path"]
        if any(os.access(f"{folder}/python", os.X_OK) for folder in folders):
            return None
        try:
            return find_interpreter(Command(Starter.SHEBANG, "python3"), search="").path
        except SkillError:
            return None


def _state(made: Path) -> State | None:
    """Describe a scratch folder that no run had yet: what it is and holds, and when that was last changed. None: can't be told.

    The time of change can't be set (utimensat(2)), but stands still for some milliseconds; what was made or left open to
    others within those is seen by the rest.
    """
    found: list[tuple[int, int, object]] = []
    for path in (str(made), f"{made}/{OUTPUT}"):
        try:
            one = os.lstat(path)
            entries = os.listdir(path)  # noqa: PTH208 - the hot path of every run
        except OSError:
            return None
        rest = (one.st_mode, one.st_uid, one.st_gid, one.st_ctime_ns, entries)
        found.append((one.st_dev, one.st_ino, rest))
    return tuple(found)


def root_of(scratch: Path) -> Path:
    """Return the launcher's folder that a scratch folder lies in."""
    return scratch.parent.parent
