"""Pair: the warden and the launcher as two processes of ours, from their start to the proof of their end."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from skillrun import log
from skillrun.launch.faults import LauncherError
from skillrun.problem import error
from skillrun.resources import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VERSION = 1  # of the messages; both ends must name the same
_HELLO_TIMEOUT = 20.0  # seconds; a start takes about 0.02
_FAREWELL = 10.0  # seconds the launcher gets to end, and once more the warden to bury what is left
# The file and not its folder: to run a folder, Python loads runpy and a dozen modules more, which every fork then copies.
_PROGRAM = PACKAGE / "confine" / "__main__.py"


@dataclass(frozen=True, slots=True)
class Pair:
    """Both processes: the socket to the launcher, the warden, and what the launcher said of itself and this host.

    `process` is a pidfd of the launcher: its number can't become somebody else's.
    """

    socket: socket.socket
    warden: subprocess.Popen[bytes]
    process: int = -1
    hello: Mapping[str, Any] = field(default_factory=dict)

    def serves(self) -> bool:
        """Tell whether the warden lives and the socket has no end: two system calls in every run."""
        if self.warden.poll() is not None:
            return False
        try:
            self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True  # it says nothing after its hello
        except OSError:
            return False
        return False

    def kill(self) -> None:
        """Kill a launcher that does not answer; the warden then buries what it had started."""
        if self.process >= 0:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self.process, signal.SIGKILL)

    def end(self) -> None:
        """End the launcher, and return when nothing it had started is left."""
        with contextlib.suppress(OSError):
            # A close would tell nothing while a forked copy of this process holds the socket as well.
            self.socket.shutdown(socket.SHUT_WR)
        if not self._farewell():
            self.kill()
            if not self._farewell():
                self.warden.kill()
                self.warden.wait()
        self._release()

    def forget(self) -> None:
        """Let go of a pair that belongs to the process we were forked from."""
        self.warden.returncode = 0  # not our child: Popen must neither wait for it nor complain
        self._release()

    def _release(self) -> None:
        self.socket.close()
        if self.process >= 0:
            os.close(self.process)

    def _farewell(self) -> bool:
        """Wait for the end of launcher and warden; return whether both are gone."""
        last = time.monotonic() + _FAREWELL
        # It holds its end to its last breath, so the end of the socket is the launcher's.
        return ends(self.socket, _FAREWELL) and _reaped(self.warden, max(0, last - time.monotonic()))


def start(scratch_root: Path) -> Pair:
    """Start a warden with an empty environment, isolated from the caller's Python settings, and hear its launcher.

    `scratch_root` is removed by whichever of owner, launcher and warden lives longest. Raises LauncherError
    or OSError, and leaves nothing then.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        arguments = [str(theirs.fileno()), str(os.getpid()), str(scratch_root), str(VERSION)]
        try:
            warden = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_PROGRAM), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={},
                cwd="/",
                start_new_session=True,  # Ctrl-C in the terminal is for the owner, who then ends the runs
            )
        except BaseException:
            ours.close()
            raise
    pair = Pair(ours, warden)
    try:
        hello = _hello(ours)
        log.debug("launcher started", pid=hello["pid"], scratch=scratch_root)
        return replace(pair, hello=hello, process=os.pidfd_open(hello["pid"]))
    except BaseException:
        pair.end()
        raise


def _hello(connection: socket.socket) -> Mapping[str, Any]:
    """Take the launcher's first message."""
    connection.settimeout(_HELLO_TIMEOUT)
    try:
        words = connection.recv(65536)
    except OSError:
        words = b""
    connection.settimeout(None)
    if not words:
        message = f"the launcher ended before it said hello (`{sys.executable} -I -S {_PROGRAM}`)"
        raise LauncherError(error("launcher-start", message, help="check that this Python runs with `-I -S`"))
    hello: Mapping[str, Any] = json.loads(words)
    if hello["version"] != VERSION:
        raise LauncherError(error("launcher-version", "the launcher is of another version of skillrun"))
    return hello


def ends(by: socket.socket, seconds: float) -> bool:
    """Wait for the other end of a socket to be closed; return whether it was."""
    waiter = select.poll()
    waiter.register(by, select.POLLIN)
    last = time.monotonic() + seconds
    try:
        while waiter.poll(max(0, last - time.monotonic()) * 1000):
            if not by.recv(65536, socket.MSG_DONTWAIT):
                return True
    except OSError:
        return True
    return False


def _reaped(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for the end of a child and take it; return whether it came.

    By pidfd: Popen.wait with a limit looks again and again, in the end 50 ms apart, and every command would wait for that.
    """
    if child.poll() is not None:
        return True
    try:
        death = os.pidfd_open(child.pid)
    except OSError:  # no descriptor is free
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
        return child.returncode is not None
    try:
        waiter = select.poll()
        waiter.register(death, select.POLLIN)
        waiter.poll(seconds * 1000)
    finally:
        os.close(death)
    return child.poll() is not None
