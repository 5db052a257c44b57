"""What the watch of memory and processes sees: also what a process keeps where /proc does not show it at first sight."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillrun.confine import supervise, watch

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the watch of the launcher reads Linux's /proc"
)

# Its main thread alone ends, by the bare system call; the other one holds memory and a memory file.
_HEADLESS = """
import ctypes, os, threading, time
file = os.memfd_create("kept")
os.write(file, bytes(64 << 20))
kept = bytearray(os.urandom(1 << 20) * 32)
threading.Thread(target=time.sleep, args=(60,)).start()
print("ready", flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60}.get(os.uname().machine, 93), 0)
"""


def finished(looks: watch.Watch, leader: int) -> object:
    """Look once, to the end, and return what is found."""
    found = looks.go_on(leader)
    while found is None and looks._look is not None:
        found = looks.go_on(leader)
    return found


def look(leader: int, *, mode: str = "tree", memory: int = 1 << 60, processes: int = 1 << 30) -> object:
    """Look at a process twice, and return what it has too much of."""
    looks = watch.Watch(mode=mode, memory=memory, processes=processes)
    return finished(looks, leader) or finished(looks, leader)


@pytest.fixture
def headless() -> Iterator[int]:
    """Give a process whose main thread has ended: a zombie in name."""
    with subprocess.Popen([sys.executable, "-c", _HEADLESS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        while watch._pages(f"/proc/{process.pid}"):
            time.sleep(0.001)
        yield process.pid
        process.kill()


def test_a_process_without_its_main_thread_is_counted(headless: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the state of the dead with our reaper as its parent, and it runs."""
    assert Path(f"/proc/{headless}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    monkeypatch.setattr(watch, "members", lambda *_, **__: iter([headless]))
    assert look(os.getpid(), mode="group", processes=1) == ("processes", 2)
    assert look(os.getpid(), mode="group", processes=2) is None


@pytest.mark.parametrize("mode", ["group", "tree"])
def test_the_memory_of_a_process_without_its_main_thread_is_seen(headless: int, mode: str) -> None:
    """What /proc/PID says of it is nothing: another thread is asked. Only an unconfined script can have memory files."""
    holds = (80 if mode == "tree" else 32) << 20
    what, amount = look(headless, mode=mode, memory=holds)  # type: ignore[misc]
    assert what == "memory"
    assert amount > holds
    assert look(headless, mode=mode, memory=holds + (64 << 20)) is None


def test_neither_of_two_without_their_main_threads_is_the_others() -> None:
    """Both show the same address space where they show none: they are counted each for itself."""
    program = (
        "import ctypes, os, threading, time\nkept = bytearray(os.urandom(1 << 20) * 32)\nchild = os.fork()\n"
        "if not child: kept = bytearray(os.urandom(1 << 20) * 32)\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\nif child: print(child, flush=True)\n"
        "ctypes.CDLL(None).syscall({'x86_64': 60}.get(os.uname().machine, 93), 0)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        while any(watch._pages(f"/proc/{pid}") for pid in (process.pid, child)):
            time.sleep(0.001)
        assert watch._share(child, most=1 << 40) > 32 << 20
        os.kill(child, signal.SIGKILL)
        process.kill()


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
        now[0] += 1
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


def test_a_look_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one step at a time it comes to its end all the same."""
    monkeypatch.setattr(watch, "_SLICE", -1)
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
    monkeypatch.setattr(watch, "members", lambda *_, **__: (child.pid for child in children))
    looks = watch.Watch(mode="group", memory=1 << 60, processes=3)
    found, asked = looks.go_on(os.getpid()), 1
    while found is None and looks._look is not None:
        found, asked = looks.go_on(os.getpid()), asked + 1
    for child in children:
        child.kill()
        child.wait()
    assert found == ("processes", 4)
    assert asked > 7


def test_who_is_never_there_for_long_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight at any moment, others each time, where four may be: after some looks that is too many; two are not."""
    for many, wanted in ((8, ("processes", 8)), (2, None)):
        fresh = itertools.count(5_000_000)

        def listed(*_: object, fresh: Iterator[int] = fresh, many: int = many, **__: object) -> Iterator[int]:
            return itertools.islice(fresh, many)

        asked: set[int] = set()

        def lives(pid: int, *, asked: set[int] = asked, **_: object) -> bool:
            first = pid not in asked  # and gone when it is asked for again
            asked.add(pid)
            return first

        monkeypatch.setattr(watch, "members", listed)
        monkeypatch.setattr(watch, "lives", lives)
        looks = watch.Watch(mode="init", memory=1 << 60, processes=4)
        looks._crowded = 1
        assert [finished(looks, os.getpid()) for _ in range(3)] == [None, None, wanted]


def test_a_child_between_fork_and_exec_has_no_memory_of_its_own(tmp_path: Path) -> None:
    """Until its exec it uses its parent's (vfork(2)), and the kernel shows that with both: it is there once."""
    os.mkfifo(tmp_path / "gate")
    program = (
        "import os, sys\nkept = bytearray(os.urandom(1 << 20) * 64)\nprint('ready', flush=True)\n"
        "os.posix_spawn('/bin/true', ['true'], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "gate")], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        while not (spawned := supervise.descendants(process.pid)):
            time.sleep(0.001)
        assert watch._pages(f"/proc/{spawned[0]}") > 64 << 20, "it has an exec behind it"
        assert look(process.pid, mode="group", memory=96 << 20) is None
        assert look(process.pid, mode="group", memory=48 << 20) is not None
        with (tmp_path / "gate").open("w"):
            process.wait(20)


@pytest.mark.parametrize(("at_once", "wanted"), [(True, [True]), (False, [False, True])])
def test_what_took_more_than_a_moment_has_to_be_so_twice(
    monkeypatch: pytest.MonkeyPatch,
    at_once: bool,  # noqa: FBT001
    wanted: list[bool],
) -> None:
    """Processes that take turns with the same memory never have all of it together."""
    if not at_once:
        monkeypatch.setattr(watch, "_SLICE", -1)
    monkeypatch.setattr(watch, "members", lambda *_, **__: iter([1, 2]))
    monkeypatch.setattr(watch, "_resident", lambda _: 60)
    monkeypatch.setattr(watch, "_share", lambda _, **__: 60)
    looks = watch.Watch(mode="group", memory=100, processes=100)
    assert [finished(looks, os.getpid()) is not None for _ in wanted] == wanted
    monkeypatch.setattr(watch, "_share", lambda _, **__: 20)
    assert finished(looks, os.getpid()) is None
    assert not looks._heavy


def test_one_process_that_has_too_much_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is one moment, however long it took; and nothing is read after it."""
    monkeypatch.setattr(watch, "_SLICE", -1)
    monkeypatch.setattr(watch, "members", lambda *_, **__: iter([1, 2]))
    monkeypatch.setattr(watch, "_resident", lambda _: 200)
    asked: list[float] = []
    monkeypatch.setattr(watch, "_share", lambda _, *, most: asked.append(most) or 200)
    assert finished(watch.Watch(mode="group", memory=100, processes=100), os.getpid()) == ("memory", 200)
    assert asked == [200]


def test_the_share_of_what_is_mapped_again_and_again_is_not_read() -> None:
    """The kernel takes 18 ms a GiB to tell it, as one call: who has so much more than is there can't ask for that."""
    program = (
        "import mmap, os, tempfile, time\nfile = tempfile.TemporaryFile()\nfile.write(bytes(16 << 20))\nfile.flush()\n"
        "kept = [mmap.mmap(file.fileno(), 16 << 20, mmap.MAP_SHARED | mmap.MAP_POPULATE) for _ in range(32)]\n"
        "print('ready', flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert watch._share(process.pid, most=1 << 40) < 64 << 20
        assert watch._share(process.pid, most=256 << 20) > 512 << 20
        process.kill()
