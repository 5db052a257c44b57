"""What the watch of memory and processes sees: also what a process keeps where /proc does not show it at first sight."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from skillrun.confine import watch

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the watch of the launcher reads Linux's /proc"
)

_CLONE_FILES = 0x400  # <linux/sched.h>
# Its main thread alone ends, by the bare system call; the other one holds memory and a memory file.
_HEADLESS = """
import ctypes, os, threading, time
file = os.memfd_create("kept")
os.write(file, bytes(8 << 20))
kept = bytearray(os.urandom(1 << 20) * 32)
threading.Thread(target=time.sleep, args=(60,)).start()
print("ready", flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60}.get(os.uname().machine, 93), 0)
"""


@pytest.fixture
def headless() -> Iterator[int]:
    """Give a process whose main thread has ended: a zombie in name."""
    with subprocess.Popen([sys.executable, "-c", _HEADLESS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        while f"/proc/{process.pid}" in watch._threads(process.pid) or watch._pages(f"/proc/{process.pid}"):
            pass
        yield process.pid
        process.kill()


def test_a_process_without_its_main_thread_is_counted(headless: int) -> None:
    """It is in the state of the dead with our reaper as its parent, and it runs."""
    assert watch._stat(f"/proc/{headless}")[0] == b"Z"
    assert watch.count([headless], reaper=os.getpid()) == 1


@pytest.mark.parametrize("limit", [0, 1 << 40], ids=["proportional", "resident"])
def test_the_memory_of_a_process_without_its_main_thread_is_seen(headless: int, limit: int) -> None:
    """What /proc/PID says of it is nothing: the other threads are asked."""
    assert watch.memory([headless], limit) > 40 << 20


def test_a_memory_file_that_only_one_thread_holds_is_seen() -> None:
    """A thread may have a table of descriptors of its own (clone(2) without CLONE_FILES); what is shared counts once."""
    made, over = threading.Event(), threading.Event()
    failed: list[int] = []

    def hold() -> None:
        failed.append(ctypes.CDLL(None).unshare(_CLONE_FILES))
        file = os.memfd_create("own")
        os.write(file, bytes(16 << 20))
        made.set()
        over.wait(20)
        os.close(file)

    shared = os.memfd_create("shared")
    os.write(shared, bytes(8 << 20))
    before = watch._memory_files([os.getpid()])
    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert made.wait(20)
        assert failed == [0]
        assert watch._memory_files([os.getpid()]) == before + (16 << 20)
    finally:
        over.set()
        thread.join()
        os.close(shared)


def test_a_table_that_threads_share_is_read_once() -> None:
    """Else a look at a process with many threads would take that many times as long, which holds up every other run."""
    program = "import threading, sys\nfor _ in range(5): threading.Thread(target=sys.stdin.read).start()\nprint('ready', flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert len(watch._threads(process.pid)) == 6
        assert len(watch._tables(process.pid)) == 1
        process.kill()
