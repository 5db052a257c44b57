"""The owner's end of the launcher: started once, asked for each run, replaced when it dies."""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillrun import resources
from skillrun.errors import SkillrunError
from skillrun.launch.system import System, present
from skillrun.problem import error
from skillrun.resources import PACKAGE
from skillrun.sandbox.backend import Probe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillrun.sandbox.backend import LaunchPlan

VERSION = 1  # of the messages; both ends must name the same
_HELLO_TIMEOUT = 20.0  # seconds; a start takes about 0.02
_TERMS = ("mode", "timeout", "grace", "memory", "processes")  # what the launcher itself has to know of a plan
_FAREWELL = 10.0  # seconds the warden gets to bury what is left


class LauncherError(SkillrunError):
    """The launcher could not be started or does not answer."""


class Launcher:
    """One warden and one launcher for one process. Thread-safe; a forked child gets its own.

    `temporary` is where the folder of all scratch folders is made; it is removed by whichever of
    owner, launcher and warden lives longest.
    """

    def __init__(self, *, temporary: Path) -> None:
        self._temporary = temporary
        self._lock = threading.Lock()
        self._owner = 0
        self._socket: socket.socket | None = None
        self._warden: subprocess.Popen[bytes] | None = None
        self._hello: Mapping[str, Any] = {}
        self._system = System()
        self._probe: Probe | None = None
        self._taught: dict[str, int] = {}  # bases this launcher knows, by the number it knows them by
        self.scratch_root = Path()

    def start(self) -> Probe:
        """Start the launcher if there is none, and return what it says of this host, level 2 not tried."""
        self._ensure()
        with self._lock:
            return Probe(
                platform=sys.platform,
                machine=self._hello["machine"],
                landlock=self._hello["landlock"],
                seccomp=self._hello["seccomp"],
                system=self._system.places,
                links=self._system.links,
                root=os.geteuid() == 0,
            )

    def _ensure(self) -> None:
        """Have a launcher of this process."""
        if self._socket is None or self._owner != os.getpid():
            with self._lock:
                if self._socket is None or self._owner != os.getpid():
                    self._start()

    def folder(self) -> Path:
        """Return the folder for scratch folders of a launcher that is started."""
        self._ensure()
        return self.scratch_root

    def probe(self) -> Probe:
        """Return what this host can do, level 2 tried out whole with a throwaway child, once a launcher."""
        self._ensure()
        if self._probe is None:
            found = self.start()
            from skillrun.launch.probing import try_level2  # noqa: PLC0415 - it drives a run through this launcher

            self._probe = try_level2(self, found)
        return self._probe

    def _start(self) -> None:
        """Start the warden with an empty environment, isolated from the caller's Python settings."""
        self._forget()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.scratch_root = Path(tempfile.mkdtemp(prefix="skillrun-", dir=self._temporary)).resolve()
        arguments = [str(theirs.fileno()), str(os.getpid()), str(self.scratch_root), str(VERSION)]
        command = [sys.executable, "-I", "-S", str(PACKAGE / "confine"), *arguments]
        try:
            self._warden = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={},
                cwd="/",
                start_new_session=True,  # Ctrl-C in the terminal is for the owner, who then ends the runs
            )
        except OSError as problem:
            ours.close()
            raise LauncherError(
                error("launcher-start", f"the launcher could not be started: {problem}")
            ) from problem
        finally:
            theirs.close()
        self._socket = ours
        self._owner = os.getpid()
        self._taught = {}
        self._probe = None
        ours.settimeout(_HELLO_TIMEOUT)
        try:
            words = ours.recv(65536)
        except OSError:
            words = b""
        ours.settimeout(None)
        if not words:
            self._close()
            raise LauncherError(
                error(
                    "launcher-start",
                    f"the launcher ended before it said hello (`{sys.executable} -I -S {PACKAGE / 'confine'}`)",
                    help="check that this Python runs with `-I -S`",
                )
            )
        self._hello = json.loads(words)
        self._system = present(resources.table("linux/system"))
        if self._hello["version"] != VERSION:
            self._close()
            raise LauncherError(error("launcher-version", "the launcher is of another version of skillrun"))

    def request(self, launch: LaunchPlan, pipes: Sequence[int], *, announce: bool = False) -> socket.socket:
        """Send a plan with the script's ends of its pipes; return the control socket of the run.

        With `announce` the launcher says when it has started, and with which process id.

        The pipes are closed here. A launcher that died since the last run is replaced once; a plan is
        never sent to two launchers after one of them took it.
        """
        plan = -1
        try:
            plan = _memory_file(json.dumps(launch.wire).encode())
            return self._send(launch, [plan, *pipes], announce=announce)
        finally:
            for descriptor in (plan, *pipes):
                if descriptor >= 0:
                    os.close(descriptor)

    def _send(self, launch: LaunchPlan, descriptors: Sequence[int], *, announce: bool) -> socket.socket:
        """Send descriptors with a new control socket, to a new launcher if the old one is gone."""
        for attempt in range(2):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                self._ensure()
                terms = {"announce": announce, **{name: launch.wire[name] for name in _TERMS}}
                if launch.base is not None:
                    terms["base"] = self._teach(launch.base)
                self._post(terms, [theirs.fileno(), *descriptors])
            except OSError as problem:
                ours.close()
                with self._lock:
                    self._close()
                if attempt:
                    raise LauncherError(
                        error("launcher-gone", f"the launcher does not take a run: {problem}")
                    ) from problem
            except BaseException:
                ours.close()
                raise
            else:
                return ours
            finally:
                theirs.close()
        raise AssertionError  # pragma: no cover - the loop returns or raises

    def _teach(self, base: str) -> int:
        """Make sure that the launcher knows a base, and return the number it knows it by."""
        with self._lock:
            number = self._taught.get(base)
            if number is None:
                number = len(self._taught) + 1
                words = _memory_file(base.encode())
                try:
                    self._post({"base": number}, [words])
                finally:
                    os.close(words)
                self._taught[base] = number
            return number

    def _post(self, message: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        """Send one message; the kernel keeps messages of several threads apart."""
        if self._socket is None:
            raise BrokenPipeError("the launcher was closed meanwhile")
        rights = array.array("i", descriptors)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        self._socket.sendmsg([json.dumps(message).encode()], ancillary, socket.MSG_NOSIGNAL)

    def replace(self) -> None:
        """Give up a launcher that does not answer: kill it, let the warden clear up, start anew when needed."""
        with self._lock:
            if self._hello and self._owner == os.getpid() and self._warden is not None:
                # Only while the warden lives is this process id certain to be the launcher's.
                if self._warden.poll() is None:
                    with contextlib.suppress(OSError):
                        os.kill(int(self._hello["pid"]), 9)
                self._close()

    def close(self) -> None:
        """End every run, wait until the warden has buried it, and remove what is left of scratch folders."""
        with self._lock:
            if self._owner == os.getpid():
                self._close()
            else:
                self._forget()

    def _close(self) -> None:
        """Close the socket, which ends the launcher, and wait for the warden."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._warden is not None:
            try:
                self._warden.wait(_FAREWELL)
            except subprocess.TimeoutExpired:
                self._warden.kill()
                self._warden.wait()
            self._warden = None
        self._hello = {}

    def _forget(self) -> None:
        """Let go of a launcher that belongs to the process we were forked from."""
        if self._socket is not None and self._owner != os.getpid():
            self._socket.close()
            self._socket = None
        if self._warden is not None and self._owner != os.getpid():
            self._warden.returncode = 0  # not our child: Popen must neither wait for it nor complain
            self._warden = None


def _memory_file(words: bytes) -> int:
    """Put words into a file without a name, rewound: a message of the socket could not hold them all."""
    descriptor = os.memfd_create("skillrun", os.MFD_CLOEXEC)
    try:
        rest = memoryview(words)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
