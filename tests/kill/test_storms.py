"""Storms: scripts that make so many dead, or hold so much, that to look at all of it would take for ever."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from arena import LEVELS, set_grace

from skillrun import Call, Termination

if TYPE_CHECKING:
    from arena import Arena

    from skillrun import Result

pytestmark = [pytest.mark.alone, pytest.mark.slow]

NEIGHBOUR = "import time\nprint('hi', flush=True)\ntime.sleep(0.5)\n"

# Children that end at once, beside this process (CLONE_PARENT): our own reaper has to come to each. In machine code,
# since nothing slower than that is faster than a reaper: clone(CLONE_PARENT | CLONE_VFORK | CLONE_VM | SIGCHLD) for ever.
STORM = """
import ctypes, mmap, os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.alarm(20)  # whatever becomes of this test
print("ready", flush=True)
for _ in range(2):
    if os.fork() == 0:
        signal.alarm(20)
        break
code = bytes.fromhex(
    "b838000000 bf11c10000 31f6 31d2 4d31d2 4d31c0 0f05"  # clone
    "85c0 7509 b83c000000 31ff 0f05"  # exit in the child
    "ebdb"
)
page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""

# Very many descriptors: thirty processes with all that the system lets one have.
HOARD = """
import os, resource, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
most = min(hard, 20_000)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
try:
    while True: os.dup(0)
except OSError: pass
print("ready", flush=True)
for _ in range(30):
    if os.fork() == 0: break
time.sleep(60)
"""


def beside(
    arena: Arena, mode: str, source: str, *, count: int, timeout: float, after: float
) -> tuple[list[Result], float]:
    """Run a script `count` times and, `after` some seconds, a neighbour; return the results, and what the neighbour took."""
    arena.script(source)
    arena.script(NEIGHBOUR, skill="beside")
    with arena.runner(mode) as runner:
        runner.launcher.start()
        crowd = [runner.start(Call("demo", timeout=timeout)) for _ in range(count)]
        time.sleep(after)
        began = time.monotonic()
        neighbour = runner.run("beside", "go.py", timeout=30)
        took = time.monotonic() - began
        results = [one.wait(30) for one in crowd]
        arena.assert_dead()
    arena.assert_clean()
    assert (neighbour.termination, neighbour.stdout.text) == (Termination.EXITED, "hi\n")
    return results, took


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the storm is written in machine code of x86_64")
@pytest.mark.parametrize("mode", LEVELS)
def test_a_storm_of_the_dead_holds_up_no_clock(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Three at once: each is ended at its deadline or for its processes, and a run beside them ends as it would alone."""
    set_grace(monkeypatch, 0.2)
    results, took = beside(arena, mode, STORM, count=3, timeout=1.5, after=0.5)
    for result in results:
        assert result.error is None or result.error.rule == "process-limit", result.error
        assert result.termination in {Termination.TIMED_OUT, Termination.CANCELLED}
    # At passthrough a supervisor that can't keep up is given up, and what it leaves is buried by the launcher.
    if mode != "passthrough":
        assert took < 5, f"{took:.1f} s beside a storm"
        assert max(result.duration_s for result in results) < 1.5 + 0.2 + 5


@pytest.mark.parametrize("mode", LEVELS)
def test_a_hoard_of_descriptors_holds_up_no_clock(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """600,000 descriptors, within every limit: the deadline comes when it should, and nobody beside waits."""
    set_grace(monkeypatch, 0.2)
    (result,), took = beside(arena, mode, HOARD, count=1, timeout=2, after=1)
    assert took < 2.5, f"{took:.1f} s beside a hoard"
    assert (result.termination, result.stdout.text, result.error) == (Termination.TIMED_OUT, "ready\n", None)
    assert result.duration_s < 2 + 0.2 + 2
