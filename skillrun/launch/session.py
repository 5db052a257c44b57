"""Session: what the launcher is on Linux, where there is none: each run a process in a session of its own.

It speaks as a launcher does, so a run is driven in one way everywhere. A thread of this process stands in for the
launcher's watch: deadline, memory, cancel, and the end of the whole tree.
"""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skillrun.confine.trees import remove_root
from skillrun.errors import SkillrunError
from skillrun.launch.faults import LauncherError, explain
from skillrun.launch.launcher import Sent
from skillrun.launch.preflight import Preflight, in_a_sandbox
from skillrun.launch.root import make_root
from skillrun.launch.system_log import LOG
from skillrun.launch.watch import Watch
from skillrun.problem import Problem, error
from skillrun.resources import PACKAGE
from skillrun.sandbox.backend import Probe
from skillrun.sandbox.seatbelt.backend import LAUNCHER
from skillrun.skills.digest import identity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillrun.launch.scratches import Place
    from skillrun.sandbox.backend import LaunchPlan

_PROFILES: Final = (
    "profiles"  # beside the scratch folders, and like those in a folder that is kept from every run
)


class Session:
    """Starts runs of one process without a launcher. Thread-safe.

    `program` is sandbox-exec and `log` the reader of the system's log, by their absolute paths. `temporary` is where the folder of all scratch folders is
    made.
    """

    def __init__(
        self, *, temporary: Path, program: str = LAUNCHER, log: str = LOG, system: str = sys.platform
    ) -> None:
        self._temporary = temporary
        self._program = program
        self._log = log
        self._platform = system
        self._lock = threading.Lock()
        self._owner = 0
        self._preflight = Preflight(program)
        self._watches: set[Watch] = set()
        self._closed = 0  # the process that is done with it
        self.scratch_root = Path()

    def start(self) -> Probe:
        """Make the folder of scratch folders, and return what this host can do."""
        self.folder()
        return self.probe()

    def folder(self) -> Path:
        """Return the folder for scratch folders; one that somebody removed is made anew."""
        with self._lock:
            if self._closed == os.getpid():
                raise LauncherError(error("runner-closed", "the runner was closed before the run had begun"))
            if self._owner != os.getpid() or not self.scratch_root.is_dir():
                try:
                    self.scratch_root = Path(make_root(self._temporary)).resolve()
                    (self.scratch_root / _PROFILES).mkdir(mode=0o700)
                except OSError as problem:
                    message = f"no folder can be made in the temporary folder `{self._temporary}`: {problem.strerror}"
                    raise LauncherError(
                        error("temporary-folder", message, help="name another by TMPDIR")
                    ) from problem
                self._owner = os.getpid()
            return self.scratch_root

    def keeps(self, root: Path) -> bool:
        """Whether what was put into a root will be removed by `close`; no lock, so this may be asked anywhere."""
        return self._closed != os.getpid() and (self._owner, self.scratch_root) == (os.getpid(), root)

    def probe(self) -> Probe:
        """Return what this host can do: whether there is a sandbox-exec, and whether we are in a sandbox ourselves."""
        return Probe(
            platform=self._platform,
            machine=platform.machine(),
            root=os.geteuid() == 0,
            problems=tuple(self._problems()),
        )

    def _problems(self) -> list[Problem]:
        if not os.access(self._program, os.X_OK):
            return [error("backend-sandbox-exec", f"there is no `{self._program}`")]
        if self._platform == sys.platform and in_a_sandbox():
            message = "this process is in a sandbox already, and macOS allows no second one in it"
            return [error("backend-nested", message, help="start skillrun outside of that sandbox")]
        return []

    def request(
        self,
        launch: LaunchPlan,
        pipes: Sequence[int],
        *,
        announce: bool = False,
        scratch: Path | None = None,
        upcoming: Place | None = None,  # noqa: ARG002 - nothing is built ahead here
    ) -> Sent:
        """Start a run with the script's ends of its pipes; return the control socket that its end is told on.

        The pipes are closed here. Raises LauncherError when nothing could be started.
        """
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            failed = self._refusal(launch)
            if failed is None:
                self._start(launch, pipes, theirs, scratch, announce=announce)
            else:
                Watch.tell(theirs, {"event": "failed", "errno": None, **failed})
                theirs.close()
        except (OSError, RuntimeError) as problem:  # RuntimeError: no thread can be started
            control.close()
            theirs.close()
            said = explain(problem, scratch or self.scratch_root) if isinstance(problem, OSError) else None
            message = f"the script could not be started: {problem}"
            raise said or LauncherError(error("launcher-start", message)) from problem
        except BaseException:
            control.close()
            theirs.close()
            raise
        finally:
            for descriptor in pipes:
                os.close(descriptor)
        return Sent(control, control)

    def _start(
        self,
        launch: LaunchPlan,
        pipes: Sequence[int],
        theirs: socket.socket,
        scratch: Path | None,
        *,
        announce: bool,
    ) -> None:
        """Start the process and its watch, or neither."""
        command = self._command(launch)
        process = self._popen(launch.wire, command, pipes)
        try:
            watch = Watch(
                process, launch.wire, theirs, scratch, announce=announce, done=self._done, log=self._log
            )
            watch.check = lambda status: self._preflight.explain(status, command, launch.wire["argv"][0])
            self._watches.add(watch)
            watch.start()
        except BaseException:
            process.kill()
            process.wait()
            raise

    def _refusal(self, launch: LaunchPlan) -> dict[str, Any] | None:
        """Say why a run must not start: a file that was exchanged, or a profile that macOS does not take."""
        for path, device, inode, digest in (*launch.wire["identity"], (*launch.wire["cwd"], None)):
            if not _is_same(Path(path), device, inode, digest):
                return {
                    "stage": "identity",
                    "changed": True,
                    "message": f"`{path}` was changed since the run was planned",
                }
        if "profile" not in launch.wire:
            return None
        return self._preflight.check(launch.wire["profile"], self._confined(launch.wire))

    def _command(self, launch: LaunchPlan) -> list[str]:
        """Write the command line: the profile by `-f`, each path by `-D`, and what runs."""
        argv = list(launch.wire["argv"])
        return [*self._confined(launch.wire), *argv] if "profile" in launch.wire else argv

    def _confined(self, wire: Mapping[str, Any]) -> list[str]:
        """Write the profile to a file that no run can reach, and return the command that confines by it."""
        name = self._preflight.digest(wire["profile"])
        file = self.folder() / _PROFILES / f"{name}.sb"
        if not file.exists():
            made = file.with_suffix(f".{threading.get_ident()}")
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as text:
                text.write(wire["profile"])
            made.replace(file)
        definitions = [word for name, value in wire["parameters"] for word in ("-D", f"{name}={value}")]
        return [self._program, "-f", str(file), *definitions]

    @staticmethod
    def _popen(
        wire: Mapping[str, Any], command: Sequence[str], pipes: Sequence[int]
    ) -> subprocess.Popen[bytes]:
        """Start it in a session of its own, with the pipes and nothing else of ours."""
        limits = [f"{number}:{value}" for number, value in wire["rlimits"]]
        environ = [f"{name}={value}" for name, value in wire["env"].items()]
        return subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                str(PACKAGE / "confine" / "session.py"),
                *limits,
                "--",
                *environ,
                "--",
                *command,
            ],
            stdin=pipes[0],
            stdout=pipes[1],
            stderr=pipes[2],
            cwd=wire["cwd"][0],
            env={},
            start_new_session=True,  # a group to kill, and no terminal
        )

    def lost(self, by: socket.socket, *, stuck: bool) -> bool:  # noqa: ARG002 - as the launcher's
        """End every run that is still watched, and wait: a watch always speaks before it ends."""
        self._end_all()
        return True

    def _end_all(self) -> None:
        watches = tuple(self._watches)
        for watch in watches:
            watch.cancel()
        for watch in watches:
            watch.join()

    def _done(self, watch: Watch) -> None:
        self._watches.discard(watch)

    def unusable(self, root: Path, problem: OSError) -> LauncherError:
        """Explain why no scratch folder can be made in a root."""
        said = explain(problem, root)
        message = f"no scratch folder can be made in `{root}`: {problem.strerror}"
        return said or LauncherError(error("scratch-folder", message, help="run it again"))

    def close(self) -> None:
        """End every run, and remove what is left of scratch folders."""
        self._closed = os.getpid()
        if self._owner != os.getpid():
            return
        self._end_all()
        with self._lock, contextlib.suppress(OSError):
            remove_root(str(self.scratch_root))
            self._owner = 0


def _is_same(path: Path, device: int, inode: int, digest: str | None) -> bool:
    """Tell whether what was planned with lies there still, and holds what it held."""
    try:
        found = path.stat()
        same = (found.st_dev, found.st_ino) == (device, inode)
        return same and (digest is None or identity(path).sha256 == digest)
    except (OSError, SkillrunError):
        return False
