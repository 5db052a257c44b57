"""Scratches: the life of the scratch folders of all runs, from the launcher's folder to the last removal."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from typing import TYPE_CHECKING

from skillrun import resources
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


class Scratches:
    """Makes scratch folders in the folder of a launcher that lives, and removes them. Thread-safe."""

    def __init__(self, launcher: Launcher | Session) -> None:
        self._launcher = launcher
        self._furnished: Path | None = None
        self._unremoved: deque[Path] = deque()
        self._ahead: deque[Path] = deque()

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
            if not remove_scratch(made):  # without a free descriptor, for one
                self._unremoved.append(made)

    def make_ahead(self) -> None:
        """Make the folder of the next run while this one is under way; where that fails, the next run says why.

        It is no run's yet, and goes with the launcher's folder when there is no next one. No run can reach it: all
        scratch folders but its own are kept from each.
        """
        root = self._furnished
        if root is None or self._ahead:  # looked at without the lock first: with many at once it is there
            return
        with contextlib.suppress(OSError), self._launcher.holding(root) as here:
            if here and not self._ahead:
                self._ahead.append(make_scratch(root / RUNS))

    @property
    def ahead(self) -> tuple[Path, ...]:
        """The folder that was made for a run to come, if there is one."""
        return tuple(self._ahead)

    def _take(self, root: Path) -> Path:
        """Return a scratch folder in a root: one that was made ahead, else a new one."""
        with contextlib.suppress(IndexError):  # another thread may take it
            made = self._ahead.popleft()
            # It went with the launcher that it belonged to, or a cleaner of the temporary folder found it old.
            if made.parent == root and os.path.isdir(f"{made}/{OUTPUT}"):  # noqa: PTH112 - the hot path of every run
                return made
        return make_scratch(root)

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


def root_of(scratch: Path) -> Path:
    """Return the launcher's folder that a scratch folder lies in."""
    return scratch.parent.parent
