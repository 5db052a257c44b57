"""Watch: one run without a launcher, from its start to the end of everything that it started.

macOS has no subreaper and no process namespace. What a run started is known by its process group, by walking
from parents to children while it runs, and by the scratch folder in its environment. A process that leaves all
three is missed, and stays confined; that is why `processes` is partial.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import psutil

from skillrun.launch import system_log

if TYPE_CHECKING:
    import resource
    import socket
    from collections.abc import Callable, Mapping
    from pathlib import Path

_SHORTEST, _LONGEST = 0.002, 0.05  # seconds between two looks: often at first, since most runs are short
_COUNTING: Final = 0.1  # seconds between two counts of memory and processes
_LAST: Final = 10.0  # seconds of killing after which what can't be killed is left


class Watch(threading.Thread):
    """Waits for the end of a run, or brings it about, and tells it on a socket as a launcher does."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        wire: Mapping[str, Any],
        control: socket.socket,
        scratch: Path | None,
        *,
        announce: bool,
        done: Callable[[Watch], None],
        log: str = system_log.LOG,
    ) -> None:
        super().__init__(name=f"skillrun-{process.pid}", daemon=True)
        self._process = process
        self._wire = wire
        self._control = control
        self._scratch = None if scratch is None else str(scratch)
        self._announce = announce
        self._done = done
        self._log = log
        self._began = time.time()
        self._cancelled = threading.Event()
        self._known: dict[int, psutil.Process] = {}
        self.check: Callable[[int], dict[str, Any] | None] = lambda _: None

    @staticmethod
    def tell(control: socket.socket, message: Mapping[str, Any]) -> None:
        """Send a message; whoever waits may be gone."""
        with contextlib.suppress(OSError):
            control.send(json.dumps(message).encode())

    def cancel(self) -> None:
        """Ask for the end of the run, from any thread."""
        self._cancelled.set()

    def run(self) -> None:
        """Watch, end, and tell."""
        last: dict[str, Any] = {
            "event": "failed",
            "stage": "watch",
            "errno": None,
            "message": "the watch failed",
        }
        try:
            if self._announce:
                self.tell(self._control, {"event": "started", "pid": self._process.pid})
            last = self._watched()
        except Exception as problem:  # noqa: BLE001 - a thread has nobody to raise to; nothing may stay alive for that
            last["message"] = f"the watch failed: {problem}"
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(_LAST)
        finally:
            self.tell(self._control, last)
            self._control.close()
            self._done(self)

    def _watched(self) -> dict[str, Any]:
        started = time.monotonic()
        deadline = started + float(self._wire["timeout"])
        leader = psutil.Process(self._process.pid)
        reason: str | None = None
        counted: dict[str, int] = {}
        pause, count_at = _SHORTEST, started
        while not _ended(leader):
            now = time.monotonic()
            if self._asked_to_end():
                reason = "cancelled"
            elif now >= deadline:
                reason = "timed_out"
            elif now >= count_at:
                count_at = now + _COUNTING
                reason, counted = self._over(leader)
            if reason is not None:
                break
            time.sleep(min(pause, max(deadline - now, _SHORTEST)))
            pause = min(pause * 1.5, _LONGEST)
        leftovers = self._end(leader, gently=reason is not None)
        status, usage = self._reaped()
        failed = None if reason is not None else self.check(status)
        if failed is not None:
            return {"event": "failed", **failed}
        return {
            "event": "ended",
            "status": status,
            "reason": reason,
            "leftovers": leftovers,
            "cpu": usage.ru_utime + usage.ru_stime,
            "rss": usage.ru_maxrss
            // (1024 if os.uname().sysname == "Darwin" else 1),  # bytes on macOS, else KiB
            "denials": self._denied(),
            **counted,
        }

    def _denied(self) -> list[tuple[str, str]]:
        """Ask the log for what was denied, where the run was asked to tell."""
        if not self._wire.get("log"):
            return []
        return system_log.read(self._began, {self._process.pid, *self._known}, program=self._log)

    def _reaped(self) -> tuple[int, resource.struct_rusage]:
        """Reap the leader; one that the kernel does not let die is left, and counts as killed."""
        until = time.monotonic() + _LAST
        while True:
            pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
            if pid:
                self._process.returncode = 0  # Popen must not wait for a number that is somebody else's now
                return status, usage
            if time.monotonic() > until:
                return signal.SIGKILL, usage
            time.sleep(_SHORTEST)

    def _asked_to_end(self) -> bool:
        """Tell whether the run was cancelled, by a word on the socket or from this process."""
        with contextlib.suppress(OSError):
            self._control.settimeout(0)
            if self._control.recv(64):
                self._cancelled.set()
        return self._cancelled.is_set()

    def _over(self, leader: psutil.Process) -> tuple[str | None, dict[str, int]]:
        """Count memory and processes of the tree, and say which limit it is over."""
        tree = self._look(leader)
        memory = 0
        for one in tree:
            with contextlib.suppress(psutil.Error):
                memory += one.memory_info().rss
        counted = {"memory": memory, "processes": len(tree)}
        if memory > self._wire["memory"]:
            return "memory_limit", counted
        return ("process_limit" if len(tree) > self._wire["processes"] else None), counted

    def _look(self, leader: psutil.Process) -> list[psutil.Process]:
        """Return the living processes of the run: those that descend from it, and those known from before."""
        for parent in (leader, *tuple(self._known.values())):
            with contextlib.suppress(psutil.Error):
                for child in parent.children(recursive=True):
                    self._known.setdefault(child.pid, child)
        alive = [one for one in self._known.values() if not _ended(one)]
        return alive if _ended(leader) else [leader, *alive]

    def _end(self, leader: psutil.Process, *, gently: bool) -> int:
        """End everything that is left, and return how many that were besides the leader.

        The leader is not reaped before: as long as it is not, its group's number is nobody else's.
        """
        left = [one for one in self._rest(leader) if one.pid != leader.pid]
        if gently:
            self._signal(signal.SIGTERM, self._rest(leader))
            until = time.monotonic() + float(self._wire["grace"])
            while time.monotonic() < until and self._rest(leader):
                time.sleep(_LONGEST)
        until = time.monotonic() + _LAST
        while (alive := self._rest(leader)) and time.monotonic() < until:
            self._signal(signal.SIGKILL, alive)
            time.sleep(_SHORTEST)
        return len(left)

    def _rest(self, leader: psutil.Process) -> list[psutil.Process]:
        """Return every living process of the run, found in all three ways."""
        found = {one.pid: one for one in self._look(leader)}
        mine = os.getuid()
        for one in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if one.pid in found or one.pid == os.getpid() or one.uids().real != mine:
                    continue
                if os.getpgid(one.pid) == leader.pid or self._is_marked(one):
                    self._known.setdefault(one.pid, one)
                    if not _ended(one):
                        found[one.pid] = one
        return list(found.values())

    def _is_marked(self, one: psutil.Process) -> bool:
        """Tell whether a process has this run's scratch folder in its environment."""
        return self._scratch is not None and one.environ().get("TMPDIR") == self._scratch

    def _signal(self, number: signal.Signals, processes: list[psutil.Process]) -> None:
        """Signal the group and each process by itself."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, number)  # EPERM on macOS for a group of zombies only
        for one in processes:
            with contextlib.suppress(psutil.Error):
                one.send_signal(number)


def _ended(one: psutil.Process) -> bool:
    """Tell whether a process is gone or only waits to be reaped."""
    try:
        return not one.is_running() or one.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True
