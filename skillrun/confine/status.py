"""What /proc says of one process: whether it runs, and whose child it is."""

from __future__ import annotations

_STATE, _PARENT, _THREADS = 0, 1, 17  # in /proc/PID/stat, counted behind the name (proc(5))


def status(pid: int) -> tuple[bool, int] | None:
    """Return whether any thread of a process runs, and its parent; None when it is gone.

    One whose main thread has ended while others go on is a zombie in name only.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()  # the name before it may hold anything
        return words[_STATE] not in {b"Z", b"X"} or int(words[_THREADS]) > 1, int(words[_PARENT])
    except (OSError, ValueError, IndexError):
        return None
