"""Preflight: whether macOS takes a profile, tried once for each, and what an exit code of sandbox-exec means.

65 and 71 are sandbox-exec's own, and a script may exit with them too. So they are never read as a script's before
the same profile was tried with a program that does nothing.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

DATA_ERROR: Final = 65  # EX_DATAERR of <sysexits.h>: the profile does not compile
OS_ERROR: Final = 71  # EX_OSERR: the sandbox was refused, or what should run could not be executed
_TIMEOUT: Final = 20.0  # seconds; brew saw a nested sandbox-exec hang
_TRUE: Final = "/usr/bin/true"
_TEST: Final = "/bin/test"
_NO_FILTER: Final = 0  # SANDBOX_FILTER_NONE of libsystem_sandbox


class Preflight:
    """Tries profiles with a sandbox-exec; remembers those that were taken, by their digest."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._taken: set[str] = set()

    @staticmethod
    def digest(profile: str) -> str:
        """Return the name of a profile's text."""
        return hashlib.sha256(profile.encode()).hexdigest()

    def check(self, profile: str, confined: Sequence[str]) -> dict[str, Any] | None:
        """Return the failure of a profile, None when it is taken. `confined` is the command that confines."""
        name = self.digest(profile)
        if name in self._taken:
            return None
        failure = self._try([*confined, _TRUE])
        if failure is None:
            self._taken.add(name)
        return failure

    def _try(self, command: Sequence[str]) -> dict[str, Any] | None:
        """Run a command that does nothing, and say what is wrong when it does not end well."""
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                env={},
                cwd="/",
                timeout=_TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            return _failure("nested", "sandbox-exec does not come back", _OUTSIDE)
        except OSError as problem:
            return _failure("sandbox-exec", f"{self._program}: {problem.strerror}", None)
        return None if done.returncode == 0 else _meaning(done)

    def explain(self, status: int, command: Sequence[str], program: str) -> dict[str, Any] | None:
        """Tell sandbox-exec's own failures from a script's, by the wait status. None: it is the script's."""
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        confined = command[0] == self._program
        if not confined or code not in {DATA_ERROR, OS_ERROR}:
            return None
        front = command[: _end_of_options(command)]
        failure = self._try([*front, _TRUE])
        if failure is not None or code != OS_ERROR:
            return failure
        if self._try([*front, _TEST, "-x", program]) is None:
            return None
        missing = not os.path.lexists(program)
        number = errno.ENOENT if missing else errno.EACCES
        return {"stage": "exec", "errno": number, "message": os.strerror(number)}


def _meaning(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    """Say what the exit of a sandbox-exec means whose program does nothing."""
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    last = said[-1] if said else f"exit code {done.returncode}"
    if done.returncode == DATA_ERROR:
        return _failure("profile", last, "this is a bug in skillrun: please report it with this message")
    if done.returncode == OS_ERROR and "sandbox_apply" in last:
        return _failure("nested", "macOS allows no sandbox inside another one", _OUTSIDE)
    if done.returncode in {-signal.SIGABRT, 128 + signal.SIGABRT}:
        return _failure("loader", "the dynamic loader is stopped by the profile (SIGABRT)", _REPORT)
    return _failure("sandbox-exec", last, _REPORT)


_OUTSIDE: Final = "start skillrun outside of the other sandbox; nothing was run"
_REPORT: Final = "`skillrun profile --backend seatbelt` shows the profile"


def _failure(stage: str, message: str, advice: str | None) -> dict[str, Any]:
    return {"stage": stage, "message": message, "errno": None, "help": advice}


def _end_of_options(command: Sequence[str]) -> int:
    """Return where sandbox-exec's own words end: `-f FILE`, then `-D NAME=VALUE` again and again."""
    place = 3
    while command[place : place + 1] == ["-D"]:
        place += 2
    return place


def in_a_sandbox() -> bool:
    """Ask the kernel whether this process is sandboxed; False where it can't be asked."""
    try:
        library = ctypes.CDLL("/usr/lib/libSystem.B.dylib")
        return bool(library.sandbox_check(os.getpid(), None, _NO_FILTER))
    except (OSError, AttributeError):
        return False
