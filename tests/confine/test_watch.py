"""What the watch of memory and processes sees: also what a process keeps where /proc does not show it at first sight."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from skillrun.confine import watch

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the watch of the launcher reads Linux's /proc"
)

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


def look(leader: int, *, mode: str = "tree", memory: int = 1 << 60, processes: int = 1 << 30) -> object:
    """Look at a process to the end, and return what it has too much of."""
    looks = watch.Watch(mode=mode, memory=memory, processes=processes)
    found = looks.go_on(leader)
    while found is None and looks._look is not None:
        found = looks.go_on(leader)
    return found


@pytest.fixture
def headless() -> Iterator[int]:
    """Give a process whose main thread has ended: a zombie in name."""
    with subprocess.Popen([sys.executable, "-c", _HEADLESS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        while watch._resident(f"/proc/{process.pid}"):
            time.sleep(0.001)
        yield process.pid
        process.kill()


def test_a_process_without_its_main_thread_is_counted(headless: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the state of the dead with our reaper as its parent, and it runs."""
    assert watch.lives(headless, reaper=os.getpid()) not in {None, f"/proc/{headless}"}
    monkeypatch.setattr(watch, "members", lambda *_, **__: iter([headless]))
    assert look(os.getpid(), mode="group", processes=1) == ("processes", 2)
    assert look(os.getpid(), mode="group", processes=2) is None


@pytest.mark.parametrize("mode", ["group", "tree"])
def test_the_memory_of_a_process_without_its_main_thread_is_seen(headless: int, mode: str) -> None:
    """What /proc/PID says of it is nothing: another thread is asked. Only an unconfined script can have memory files."""
    holds = (40 if mode == "tree" else 32) << 20
    what, amount = look(headless, mode=mode, memory=holds)  # type: ignore[misc]
    assert what == "memory"
    assert amount > holds
    assert look(headless, mode=mode, memory=holds + (64 << 20)) is None


def test_a_look_takes_a_bounded_time_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much there is to see: the launcher has other runs, and clocks to keep; then it rests four times as long."""
    now = [0.0]

    def endless(*_: object, **__: object) -> Iterator[None]:
        while True:
            now[0] += 0.001
            yield None

    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(watch, "members", endless)
    looks = watch.Watch(mode="group", memory=0, processes=0)
    for _ in range(5):
        before = now[0]
        assert looks.go_on(os.getpid()) is None
        took = now[0] - before
        assert took <= watch._SLICE + 0.002
        assert looks.due >= now[0] + 4 * took - 1e-9


def test_a_flood_of_the_dead_is_too_many_without_a_closer_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read the state of each would take longer than to make them."""
    made = iter(range(10_000_000, 20_000_000))
    monkeypatch.setattr(watch, "members", lambda *_, **__: made)
    monkeypatch.setattr(watch, "lives", lambda *_, **__: pytest.fail("it was looked at"))
    assert look(os.getpid(), mode="init", processes=20) == ("processes", 20 + 1 + 4096 + 1)
