"""The battery: eight adversaries at once, ended in every way at any moment; no survivor, no stuck call, no lie.

`make test` has a round for each way, `make test-all` 200 (SKILLRUN_ROUNDS).
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from adversaries import ADVERSARIES
from arena import LEVELS, describe, eventually, launcher_pid, set_grace, state, warden_pid

from skillrun import Call, SkillrunError, Termination

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adversaries import Adversary
    from arena import Arena

    from skillrun import Handle, Runner

AT_ONCE = 8
WAYS = ("timeout", "cancel", "launcher", "warden")
# Each notes in the workspace that it was started, once for each start.
_NOTE = "import os\nwith open(os.environ['WORKSPACE'] + '/out/started', 'a') as file: file.write('{name} ')\n"


def dice() -> random.Random:
    """Give the random numbers of a test, and say how to repeat them."""
    seed = int(os.environ.get("SKILLRUN_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    print(f"SKILLRUN_SEED={seed}", file=sys.stderr)
    return random.Random(seed)


def rounds(short: int) -> int:
    """Return how many rounds a test has; 0 asks for the long form."""
    return short or int(os.environ.get("SKILLRUN_ROUNDS", "200"))


def write_all(arena: Arena) -> None:
    """Write one skill for each adversary."""
    for adversary in ADVERSARIES:
        note = _NOTE.format(name=adversary.name)
        arena.script(note + adversary.source, skill=adversary.name)


def lives(pid: int) -> bool:
    """Whether a process runs; one whose main thread has ended is a zombie in name only."""
    return state(pid) not in {"", "Z"} or len(list(Path(f"/proc/{pid}/task").glob("*"))) > 1


def judged(handle: Handle, adversary: Adversary, way: str) -> str:
    """Wait for a run and say what is wrong about its result, nothing when it is right."""
    killed = way in {"launcher", "warden"}
    try:
        result = handle.wait(4 if killed else 15)
    except SkillrunError as problem:  # the launcher was killed before this one was asked for
        rule = problem.problem.rule
        known = killed and rule in {"launcher-gone", "scratch-folder"}
        return "" if known else f"{adversary.name}: {rule}"
    except TimeoutError:
        # One that had not come to the launcher when that was killed has gone on with the next one.
        if not killed or handle.pid is None or not lives(handle.pid):
            return f"{adversary.name}: stuck"
        handle.cancel()
        result = handle.wait(15)
    ended, error = result.termination, result.error and result.error.rule
    by_itself = adversary.leaves and (ended, error, result.exit_code) == (Termination.EXITED, None, 0)
    right = {
        "timeout": (ended, error) == (Termination.TIMED_OUT, None),
        "cancel": (ended, error) == (Termination.CANCELLED, None),
        "launcher": (ended, error)
        in {(Termination.CANCELLED, "launcher-died"), (Termination.CANCELLED, None)},
        "warden": ended is Termination.CANCELLED and error in {None, "launcher-died"},
    }[way]
    # One that was killed on its way to the exec never ran, and says that.
    unborn = way != "timeout" and ended is Termination.FAILED_TO_START and error == "setup-failed"
    return (
        "" if right or by_itself or unborn else f"{adversary.name}: {ended.value} {error} {result.exit_code}"
    )


def one_round(arena: Arena, runner: Runner, chosen: Sequence[Adversary], way: str, delay: float) -> None:
    """Start all, end them in one way after a moment, and judge what comes back."""
    started = arena.out / "started"
    started.unlink(missing_ok=True)
    (arena.out / "beat").unlink(missing_ok=True)
    limit = 0.6 if way == "timeout" else 60
    handles = [runner.start(Call(one.name, timeout=30 if one.leaves else limit)) for one in chosen]
    time.sleep(delay)
    if way == "cancel":
        for handle in handles:
            handle.cancel()
    elif way in {"launcher", "warden"}:
        os.kill((launcher_pid if way == "launcher" else warden_pid)(runner), signal.SIGKILL)
    faults = [judged(handle, one, way) for handle, one in zip(handles, chosen, strict=True)]
    assert not any(faults), f"{way} after {delay:.3f} s: {[fault for fault in faults if fault]}"
    arena.assert_dead(why=way)
    twice = Counter(started.read_text().split() if started.exists() else ())
    assert all(count == 1 for count in twice.values()), f"started more than once: {twice}"


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "count", [1, pytest.param(0, marks=[pytest.mark.slow, pytest.mark.timeout(7200)], id="long")]
)
def test_eight_at_once(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, way: str, mode: str, count: int
) -> None:
    """Each call ends with what it had or an error with a name; none was started twice, and nothing is alive."""
    set_grace(monkeypatch, 0.1)
    write_all(arena)
    numbers = dice()
    with arena.runner(mode) as runner:
        for _ in range(rounds(count)):
            runner.launcher.start()
            chosen = numbers.sample(ADVERSARIES, AT_ONCE)
            # Any moment from before the first start to long after the last.
            one_round(arena, runner, chosen, way, numbers.choice([0, 0.02, 0.1, 0.3, 0.6]) * numbers.random())
    arena.assert_clean()


_OWNER = """
import json, sys
from pathlib import Path
from arena import Arena
from skillrun import Call
order = json.load(sys.stdin)
arena = object.__new__(Arena)
arena.root, arena.token = Path(order["root"]), order["token"]
runner = arena.runner(order["mode"])
runner.launcher.start()
handles = [runner.start(Call(name, timeout=60)) for name in order["names"]]
print("started", flush=True)
for handle in handles:
    handle.wait(60)
"""


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize(
    "count", [1, pytest.param(0, marks=[pytest.mark.slow, pytest.mark.timeout(7200)], id="long")]
)
def test_the_owner_of_eight_is_killed(arena: Arena, mode: str, count: int) -> None:
    """SIGKILL of the calling program at any moment: soon nothing of it is alive, and no folder is left."""
    write_all(arena)
    numbers = dice()
    for _ in range(rounds(count)):
        names = [one.name for one in numbers.sample(ADVERSARIES, AT_ONCE)]
        order = {"root": str(arena.root), "token": arena.token, "mode": mode, "names": names}
        environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
        with subprocess.Popen(
            [sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(order).encode())
            process.stdin.close()
            assert process.stdout.readline() == b"started\n"
            time.sleep(numbers.random() * 0.6)
            process.kill()
        assert eventually(lambda: not arena.everything(), 5), describe(arena.everything())
        arena.assert_dead(why=str(names))
        assert not list(arena.temporary.iterdir())
