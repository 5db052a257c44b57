"""Descriptors: standard input and output taken for the protocol, whatever a script, a library or a print does."""

from __future__ import annotations

import fcntl
import os


class Descriptors:
    """The two descriptors of the protocol, taken once in a process, before anything else is loaded.

    0 becomes /dev/null and 1 becomes standard error. They are never moved back: what a stray `print` left in
    Python's buffer is written when it exits, and then it must not reach the client either.
    """

    def __init__(self) -> None:
        self.reading = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
        self.writing = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
