"""The press: a process that has loaded the command line once, and is copied for each command of a test.

What a command does is the same to the last byte and the last descriptor; what is saved is a third of a second of imports
each time. How Python itself starts (`-m skillrun`, its own variables) is what the other tests look at: see `Desk.command`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_SECONDS = 60.0


class Press:
    """The owner's end: gives orders, each with four pipes, from any thread."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )

    def run(
        self, words: Sequence[str], *, cwd: Path, environ: Mapping[str, str], stdin: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        source, *drains = (os.pipe() for _ in range(4))
        theirs = [source[0], *(drain[1] for drain in drains)]
        told = [b"", b"", b""]
        threads = [
            threading.Thread(target=_read, args=(drain[0], told, number), daemon=True)
            for number, drain in enumerate(drains)
        ]
        order = {"words": list(words), "cwd": os.fspath(cwd), "environ": dict(environ)}
        socket.send_fds(self._socket, [json.dumps(order).encode()], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        for thread in threads:
            thread.start()
        _write(source[1], stdin.encode())
        last = time.monotonic() + _SECONDS
        for thread in threads:
            thread.join(max(0, last - time.monotonic()))
            assert not thread.is_alive(), f"{words} does not end, or something of it still holds its output"
        out, err = (one.decode(errors="surrogateescape").replace("\r\n", "\n") for one in told[:2])
        return subprocess.CompletedProcess(list(words), os.waitstatus_to_exitcode(int(told[2])), out, err)


@functools.cache
def press() -> Press:
    """Return the press of this process."""
    return Press()


def _read(descriptor: int, told: list[bytes], number: int) -> None:
    with os.fdopen(descriptor, "rb") as file:
        told[number] = file.read()


def _write(descriptor: int, words: bytes) -> None:
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            rest = memoryview(words)
            while rest:
                rest = rest[file.write(rest) :]
    except BrokenPipeError:
        return


def _serve(connection: socket.socket) -> None:
    """Fork twice for every order: a copy that waits and tells the status, and the command, in which this returns."""
    while True:
        words, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 4)
        if not words:
            sys.exit(0)
        if os.fork() == 0:
            connection.close()
            *pipes, status = descriptors
            command = os.fork()
            if command == 0:
                os.close(status)
                return _take_place(json.loads(words), pipes)
            for pipe in pipes:
                os.close(pipe)
            os.write(status, str(os.waitpid(command, 0)[1]).encode())
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _take_place(order: dict[str, object], descriptors: list[int]) -> None:
    """Become what a fresh Python with these words, folder, variables and pipes would be."""
    os.environ.clear()
    os.environ.update(order["environ"])  # type: ignore[arg-type, call-overload] # written by `Press.run`
    os.chdir(str(order["cwd"]))
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - they live as long as the process
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - see above
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115 - see above
    sys.argv = ["skillrun", *order["words"]]  # type: ignore[misc] # see above


if __name__ == "__main__":
    from skillrun.cli import main, program

    for load in program._MODULES.values():
        load()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.exit(main())
