"""The owner's end of the launcher: started once, asked for each run, replaced when it dies."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from skillrun import log, resources
from skillrun.confine.trees import remove_root
from skillrun.launch import pair
from skillrun.launch.faults import LauncherError, explain
from skillrun.launch.root import make_root, shared_root
from skillrun.launch.system import System, present
from skillrun.launch.taught import Taught, memory_file, post, written
from skillrun.problem import error
from skillrun.sandbox.backend import Probe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.launch.scratches import Place
    from skillrun.sandbox.backend import LaunchPlan

_TERMS = ("mode", "timeout", "grace", "memory", "processes")  # what the launcher itself has to know of a plan
_SIGN = 0.5  # seconds within which the socket of a launcher ends whose death another one has shown
_TRIES = 4  # of a probe, when the launcher is killed in the middle of each


@dataclass(frozen=True, slots=True)
class Sent:
    """A run that was asked for: its control socket, and the launcher's socket that it was sent by."""

    control: socket.socket
    by: socket.socket


class Launcher:
    """One warden and one launcher for one process. Thread-safe; a forked child gets its own.

    `temporary` is where the folder of all scratch folders is made; it is removed by whichever of
    owner, launcher and warden lives longest.
    """

    def __init__(self, *, temporary: Path) -> None:
        self._temporary = temporary
        self._locks: dict[int, threading.Lock] = {}
        self._owner = 0
        self._pair: pair.Pair | None = None
        self._system = System()
        self._probe: Probe | None = None
        self._taught = Taught()
        self._kept: tuple[int, Path] | None = None  # by which process, and the root, until its removal begins
        self._closed = 0  # the process that is done with it
        self._unremoved: set[str] = set()  # scratch roots of launchers that are gone
        self.scratch_root = Path()

    @property
    def _lock(self) -> threading.Lock:
        """Return this process's own lock: what a thread held at a fork is held for ever in the copy."""
        return self._locks.setdefault(os.getpid(), threading.Lock())

    def start(self) -> Probe:
        """Start the launcher if there is none, and return what it says of this host, level 2 not tried."""
        with self._lock:
            self._ensure()
            return self._found()

    def folder(self) -> Path:
        """Return the folder for scratch folders of a launcher that lives; one that died is replaced here.

        A run keeps to the launcher of its scratch folder, so this is the only moment to replace one.
        """
        with self._lock:
            self._ensure()
            return self.scratch_root

    def keeps(self, root: Path) -> bool:
        """Whether what was put into a root will be removed with its launcher: no lock, so this may be asked anywhere."""
        return self._kept == (os.getpid(), root)

    def probe(self) -> Probe:
        """Return what this host can do, level 2 tried out whole with a throwaway child, once a launcher."""
        if self._probe is not None:
            return self._probe
        from skillrun.launch.probing import try_level2  # noqa: PLC0415 - it drives a run through this launcher

        for _ in range(_TRIES):  # a launcher that somebody killed meanwhile says nothing about this host
            with self._lock:
                self._ensure()
                by, found = self._pair, self._found()
            probe = try_level2(self, found)
            with self._lock:
                if by is not None and self._pair is by and by.serves():
                    self._probe = probe
                    break
        return probe

    def _found(self) -> Probe:
        """Return what the launcher said of this host."""
        assert self._pair is not None  # noqa: S101 - `_ensure` has made it
        hello = self._pair.hello
        return Probe(
            platform=sys.platform,
            machine=hello["machine"],
            landlock=hello["landlock"],
            seccomp=hello["seccomp"],
            system=self._system.places,
            links=self._system.links,
            root=os.geteuid() == 0,
        )

    def _ensure(self) -> None:
        """Have a living launcher of this process. The lock is held, here and in all that follows it."""
        if self._closed == os.getpid():
            raise LauncherError(error("runner-closed", "the runner was closed before the run had begun"))
        if self._owner != os.getpid() or self._pair is None or not self._pair.serves():
            self._start()

    def _start(self) -> None:
        """Start a warden and its launcher in place of what is left of others. Raises LauncherError."""
        if self._owner == os.getpid():
            self._close()
        else:
            self._forget()
        try:
            made = make_root(self._temporary)
        except OSError as problem:
            with contextlib.suppress(OSError):
                shared_root(self._temporary).rmdir()  # made a moment ago, unless others use it
            message = f"no folder can be made in the temporary folder `{self._temporary}`: {problem.strerror}"
            raise LauncherError(
                error("temporary-folder", message, help="name another by TMPDIR")
            ) from problem
        self._owner = os.getpid()
        self._taught = Taught()
        self._probe = None
        self.scratch_root = Path(made)
        try:
            self.scratch_root = self.scratch_root.resolve()
            self._pair = pair.start(self.scratch_root)
            self._system = present(resources.table("linux/system"))
            self._kept = os.getpid(), self.scratch_root
        except OSError as problem:
            self._close()
            message = f"the launcher could not be started: {problem}"
            raise LauncherError(error("launcher-start", message)) from problem
        except BaseException:
            self._close()
            raise

    def request(
        self,
        launch: LaunchPlan,
        pipes: Sequence[int],
        *,
        announce: bool = False,
        scratch: Path | None = None,
        upcoming: Place | None = None,
    ) -> Sent:
        """Send a plan with the script's ends of its pipes, once; return the control socket of the run.

        With `announce` the launcher says when it has started, and with which process id. `scratch` is the
        folder that the plan names: it lives and dies with its launcher, so no other one is sent the plan. `upcoming` is
        that of the next run, where it is known.

        The pipes are closed here. Raises LauncherError; a launcher that is dead is replaced before the next run.
        """
        held = list(pipes)
        try:
            frame, words = written(launch.wire)
            plan = memory_file(words)
            held.append(plan)
            control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                try:
                    by = self._current(scratch)
                    terms = {"announce": announce, **{name: launch.wire[name] for name in _TERMS}}
                    if launch.base is not None:
                        terms["base"] = self._teach(by, launch.base, "base")
                    if frame is not None:
                        terms["frame"] = self._teach(by, frame, "frame")
                        terms["scratch"], terms["next"] = launch.wire["scratch"], upcoming
                    post(by, terms, [theirs.fileno(), plan, *pipes])
                except BaseException:
                    control.close()
                    raise
            return Sent(control, by)
        except OSError as problem:
            message = f"the launcher does not take a run: {problem.strerror}"
            said = explain(problem, scratch or self.scratch_root)
            raise said or LauncherError(error("launcher-gone", message, help="run it again")) from problem
        finally:
            for descriptor in held:
                os.close(descriptor)

    def _current(self, scratch: Path | None) -> socket.socket:
        """Return the socket to the launcher that a scratch folder belongs to."""
        with self._lock:
            mine = self._pair if self._owner == os.getpid() else None
            if mine and (scratch is None or str(scratch).startswith(f"{self.scratch_root}/")):
                return mine.socket
        raise BrokenPipeError(errno.EPIPE, "it was closed or replaced meanwhile")

    def _teach(self, by: socket.socket, words: str, kind: Literal["base", "frame"]) -> int | None:
        """Make sure that a launcher knows a base, or a frame, and return the number it knows it by."""
        with self._lock:
            if self._pair is None or self._pair.socket is not by:
                raise BrokenPipeError(errno.EPIPE, "it was closed or replaced meanwhile")
            return self._taught.base(by, words) if kind == "base" else self._taught.frame(by, words)

    def lost(self, by: socket.socket, *, stuck: bool) -> bool:
        """Find out about a launcher that ended a run without a word, or said none in time (`stuck`).

        Return False when it lives and only had no room for the request; otherwise wait until the warden
        has buried all that the launcher had started, and return True.
        """
        with self._lock:
            log.debug("launcher lost", stuck=stuck)
            if self._pair is None or self._pair.socket is not by:
                return True  # another thread was here before, and has waited
            if stuck:
                self._pair.kill()
            elif not pair.ends(by, _SIGN):
                return False
            self._close()
            return True

    def unusable(self, root: Path, problem: OSError) -> LauncherError:
        """Explain why no scratch folder can be made in a root.

        The root may have been removed, by a cleaner of the temporary folder for one; its launcher is given
        up then, so that the next run gets both anew.
        """
        said = explain(problem, root)
        if problem.errno == errno.ENOENT:
            with self._lock:
                if self._owner == os.getpid() and self.scratch_root == root:
                    self._close()
        message = f"no scratch folder can be made in `{root}`: {problem.strerror}"
        return said or LauncherError(error("scratch-folder", message, help="run it again"))

    def close(self) -> None:
        """End every run, wait until the warden has buried it, and remove what is left of scratch folders."""
        if self._owner not in {0, os.getpid()}:
            self._forget()
            return
        with self._lock:
            self._closed = os.getpid()
            self._close()

    def _close(self) -> None:
        """End the launcher, wait until nothing it had started is left, and remove the scratch root.

        The root is removed here too: launcher and warden may have been killed together.
        """
        self._kept = None
        if self._pair is not None:
            self._pair.end()
        if self._owner == os.getpid():
            self._unremoved.add(str(self.scratch_root))
        # A run that was on its way may have put its folders there again: it is looked at once more at the next end.
        self._unremoved = {one for one in self._unremoved if not remove_root(one)}
        # `scratch_root` keeps its name for runs that are still on their way.
        self._pair, self._owner = None, 0

    def _forget(self) -> None:
        """Let go of a launcher that belongs to the process we were forked from."""
        if self._pair is not None:
            self._pair.forget()
        self._pair, self._owner = None, 0
