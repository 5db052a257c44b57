"""Processes that are dead and not yet reaped: whose they are decides whether they count against the limit of a run."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from arena import eventually, state

from skillrun import Call
from skillrun.confine import watch

if TYPE_CHECKING:
    from arena import Arena

# More than the 256 that a run may have, each an orphan by the time it is dead.
ORPHANS = """
import os, pathlib, time
out = pathlib.Path(os.environ["WORKSPACE"], "out")
def wait_for(name):
    while not (out / name).exists(): time.sleep(0.01)
(out / "ready").touch()
wait_for("go")
for _ in range(300):
    child = os.fork()
    if child == 0:
        os.fork()
        os._exit(0)
    os.waitpid(child, 0)
(out / "forked").touch()
wait_for("end")
print("done")
"""


@pytest.mark.parametrize("mode", ["level-2", "passthrough"])
def test_what_our_own_parent_of_orphans_has_not_come_to_is_not_the_scripts(arena: Arena, mode: str) -> None:
    """A script forks faster than init or supervisor reaps, here because that one is stopped: the run goes on."""
    arena.script(ORPHANS)
    with arena.runner(mode) as runner:
        handle = runner.start(Call("demo"))
        # The script may be there before its owner has come to the word that it started.
        assert eventually(lambda: (arena.out / "ready").exists() and handle.pid is not None, 20)
        os.kill(handle.pid, signal.SIGSTOP)
        (arena.out / "go").touch()
        assert eventually((arena.out / "forked").exists, 20)
        time.sleep(4 * watch.PERIOD)
        os.kill(handle.pid, signal.SIGCONT)
        (arena.out / "end").touch()
        result = handle.wait(20)
        assert (result.error, result.stdout.text) == (None, "done\n")
    arena.assert_clean()


def test_the_dead_of_a_script_count_until_it_waits_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds a process id of the machine; those of our reaper do not count, unless there are too many; nor who is gone."""
    dead = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        dead.append(pid)
    assert eventually(lambda: all(state(pid) == "Z" for pid in dead))
    assert counted(dead, os.getpid(), reaper=1, monkeypatch=monkeypatch) == 4
    assert counted(dead, os.getpid(), reaper=os.getpid(), monkeypatch=monkeypatch) == 1
    with monkeypatch.context() as patched:
        patched.setattr(watch, "_BACKLOG", 1)
        assert counted(dead, os.getpid(), reaper=os.getpid(), monkeypatch=monkeypatch) == 3
    for pid in dead:
        os.waitpid(pid, 0)
    assert counted(dead, os.getpid(), reaper=1, monkeypatch=monkeypatch) == 1


def counted(dead: list[int], alive: int, *, reaper: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return for how many processes a run has too many: the least limit that these four do not exceed."""
    with monkeypatch.context() as patched:
        patched.setattr(watch, "members", lambda *_, **__: iter([*dead, alive]))
        patched.setattr(os, "getpid", lambda: reaper)  # who reaps what a group leaves
        for most in range(10):
            looks = watch.Watch(mode="group", memory=1 << 60, processes=most)
            found = looks.go_on(alive)
            while found is None and looks._look is not None:
                found = looks.go_on(alive)
            if found is None:
                return most
    raise AssertionError("more than ten")
