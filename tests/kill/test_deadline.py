"""At the deadline, and when the leader ends: the result comes in time, and nothing of the run is alive then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from adversaries import ADVERSARIES, BY_NAME, Adversary
from arena import LEVELS, set_grace

from skillrun import Termination

if TYPE_CHECKING:
    from arena import Arena

TIMEOUT = 0.45

pytestmark = pytest.mark.alone


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda a: a.name)
def test_no_adversary_is_alive_when_the_result_comes(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, adversary: Adversary, mode: str
) -> None:
    """Timed out, or exit 0 at once when the leader left: in time, truthful, with nothing alive or left over."""
    set_grace(monkeypatch, 0.1)
    arena.script(adversary.source)
    with arena.runner(mode) as runner:
        runner.launcher.start()
        timeout = 30.0 if adversary.leaves else TIMEOUT
        before = time.monotonic()
        result = runner.run("demo", "go.py", timeout=timeout)
        took = time.monotonic() - before
        arena.assert_dead(why=adversary.name)
    assert result.error is None
    assert result.stdout.text.startswith("ready\n")
    if adversary.leaves:
        assert (result.termination, result.exit_code) == (Termination.EXITED, 0)
        assert took < 1.5, f"{took:.2f} s for a leader that left at once"
        assert result.leftovers >= 1
    else:
        assert result.termination is Termination.TIMED_OUT
        assert took < TIMEOUT + 0.2 + 1.2, f"{took:.2f} s"
    arena.assert_clean()


@pytest.mark.parametrize(
    "mode", ["level-1", *(pytest.param(mode, marks=pytest.mark.slow) for mode in LEVELS[1:])]
)
def test_the_polite_time_is_two_seconds(arena: Arena, mode: str) -> None:
    """Case B-04: a script that ignores SIGTERM is gone after the timeout and a grace of at most 2 s."""
    arena.script(BY_NAME["ignores-term"].source)
    with arena.runner(mode) as runner:
        before = time.monotonic()
        result = runner.run("demo", "go.py", timeout=0.3)
        took = time.monotonic() - before
    assert result.termination is Termination.TIMED_OUT
    assert 2.2 < took < 3.0
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
def test_a_script_can_use_the_polite_time(arena: Arena, mode: str) -> None:
    """SIGTERM comes first: what a script prints and answers while it clears up is in the result."""
    arena.script(
        "import signal, sys, time\n"
        "def leave(*_):\n    print('cleared', flush=True)\n    sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, leave)\nprint('ready', flush=True)\ntime.sleep(30)\n"
    )
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.py", timeout=0.4)
    assert result.termination is Termination.TIMED_OUT
    assert (result.stdout.text, result.exit_code) == ("ready\ncleared\n", 7)
    assert result.duration_s < 1.5
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
def test_a_stopped_script_is_continued_to_use_the_polite_time(arena: Arena, mode: str) -> None:
    """A stopped process handles SIGTERM only once it is continued, so both are sent."""
    arena.script(
        "import os, signal, sys\n"
        "def leave(*_):\n    print('cleared', flush=True)\n    sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, leave)\nprint('ready', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)\n"
        "signal.pause()\n"
    )
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.py", timeout=0.4)
    assert (result.stdout.text, result.exit_code) == ("ready\ncleared\n", 7)
    assert result.duration_s < 1.5
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
def test_output_of_before_the_end_is_kept(arena: Arena, mode: str) -> None:
    """Case B-01: a grandchild that holds the pipe does not hold the call, and what was printed is there."""
    arena.script("#!/bin/sh\necho so far\nsleep 60 & wait\n", name="go.sh")
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.sh", timeout=0.3)
    assert (result.termination, result.stdout.text) == (Termination.TIMED_OUT, "so far\n")
    assert result.duration_s < 2
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize(
    "line",
    ["sleep 60 &", "setsid sleep 61 &", "(sleep 60 & sleep 61 &) &", "setsid sleep 60 >/dev/null 2>&1 &"],
)
def test_a_background_process_does_not_outlive_its_script(arena: Arena, mode: str, line: str) -> None:
    """Cases B-02 and B-03: the call returns at once with exit 0, and says that leftovers were ended."""
    arena.script(f"#!/bin/sh\necho hi\n{line}\nsleep 0.1\nexit 0\n", name="go.sh")
    with arena.runner(mode) as runner:
        result = runner.run("demo", "go.sh", timeout=30)
        arena.assert_dead()
    assert (result.termination, result.exit_code, result.stdout.text) == (Termination.EXITED, 0, "hi\n")
    assert result.leftovers >= 1
    assert result.duration_s < 1.2
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
def test_a_script_that_leaves_nothing_has_no_leftovers(arena: Arena, mode: str) -> None:
    """Children that ended by themselves, waited for or not, are no leftovers."""
    arena.script("#!/bin/sh\nsleep 0.01 & sleep 0.01 & wait\n(true &)\nsleep 0.1\n", name="go.sh")
    with arena.runner(mode) as runner:
        for _ in range(3):
            assert runner.run("demo", "go.sh").leftovers == 0
    arena.assert_clean()


def test_a_script_that_kills_its_own_group_ends_only_itself(arena: Arena) -> None:
    """kill(0, SIGKILL) in a confined script is a death by signal, and the next run works."""
    arena.script("import os, signal\nos.kill(0, signal.SIGKILL)\n")
    arena.script("print('fine')\n", name="next.py")
    with arena.runner("level-1") as runner:
        result = runner.run("demo", "go.py")
        assert (result.termination, result.signal) == (Termination.SIGNALED, 9)
        assert runner.run("demo", "next.py").stdout.text == "fine\n"
    arena.assert_clean()


@pytest.mark.parametrize("deed", ["SIGKILL", "SIGSTOP"])
def test_an_unconfined_script_that_attacks_its_supervisor_is_still_ended(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    """The supervisor is of the same user and can be killed or stopped; nothing may be alive afterwards."""
    set_grace(monkeypatch, 0.2)
    source = BY_NAME["daemon"].source.replace(
        "daemon(); ready(); rest()",
        f"daemon(lambda: (fork(rest, session=True), fork(lambda: (fork(rest), rest())), rest())); ready(); time.sleep(0.1); "
        f"os.kill(os.getppid(), signal.{deed}); rest()",
    )
    arena.script(source)
    with arena.runner("passthrough") as runner:
        result = runner.run("demo", "go.py", timeout=0.8)
        assert result.termination in {Termination.SIGNALED, Termination.TIMED_OUT}
        arena.assert_dead(why=deed)
    arena.assert_clean()


@pytest.mark.slow
def test_an_unconfined_script_that_stops_its_supervisor_again_and_again(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can't be continued long enough to end its tree: it is killed itself, and all that was below it is buried."""
    set_grace(monkeypatch, 0.2)
    arena.script(
        BY_NAME["daemon"].source.replace(
            "daemon(); ready(); rest()",
            """
boss = os.getppid()
def again():
    deaf()
    while not over():
        os.kill(boss, signal.SIGSTOP)
        beat()
deaf()
daemon(again); daemon(); ready(); rest()
""",
        )
    )
    with arena.runner("passthrough") as runner:
        result = runner.run("demo", "go.py", timeout=0.5)
        assert result.termination is Termination.TIMED_OUT
        assert result.duration_s < 0.5 + 0.2 + 3.0 + 2.0
        arena.assert_dead()
    arena.assert_clean()
