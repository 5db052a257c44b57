"""Parts of skillrun are killed while a script runs or between runs: no survivor, no stuck call, no lie."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from adversaries import BY_NAME
from arena import (
    LEVELS,
    Background,
    describe,
    eventually,
    launcher_pid,
    set_grace,
    spare_pids,
    state,
    warden_pid,
)

import skillrun.launch.drive
from skillrun import Call, SkillrunError, Termination
from skillrun.launch.orphans import end_group, end_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from arena import Arena

FEW = ("chain-new-session-each-step", "floods-both-streams", "twenty-stopped-sessions", "subreaper-inside")

pytestmark = pytest.mark.alone


@contextlib.contextmanager
def owner(arena: Arena, mode: str, *, fork: str = "") -> Iterator[dict[str, int]]:
    """Run `owner.py` until its script is ready; give the process ids."""
    order = {"root": str(arena.root), "token": arena.token, "mode": mode, "fork": fork}
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "owner.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order).encode())
    process.stdin.close()
    pids: dict[str, int] = {}
    try:
        pids.update(json.loads(process.stdout.readline()))
        yield pids
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        if pids.get("copy"):
            with contextlib.suppress(OSError):
                os.kill(pids["copy"], signal.SIGKILL)


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize("name", FEW)
def test_the_owner_is_killed(arena: Arena, name: str, mode: str) -> None:
    """SIGKILL of the program that called: its script is dead within a moment, and so is all that served it."""
    arena.script(BY_NAME[name].source)
    with owner(arena, mode) as pids:
        os.kill(pids["owner"], signal.SIGKILL)
        gone = eventually(lambda: not arena.everything(), 2.0)
        assert gone, describe(arena.everything())
        arena.assert_dead()
        assert not list(arena.temporary.iterdir())


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize("when", ["before", "during"])
def test_the_owner_is_killed_while_a_copy_of_it_holds_every_socket(
    arena: Arena, mode: str, when: str
) -> None:
    """A forked copy (multiprocessing) keeps the sockets open; the death is noticed all the same."""
    arena.script(BY_NAME["daemon"].source)
    with owner(arena, mode, fork=when) as pids:
        os.kill(pids["owner"], signal.SIGKILL)
        gone = eventually(lambda: not arena.everything(), 2.0)
        assert gone, describe(arena.everything())
        assert state(pids["copy"]) == "S", "the copy lived, so the sockets were open"
        assert not list(arena.temporary.iterdir())


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize("part", ["launcher", "warden"])
@pytest.mark.parametrize("name", FEW)
def test_the_launcher_or_the_warden_is_killed_during_a_run(
    arena: Arena, name: str, part: str, mode: str
) -> None:
    """The call returns soon, says what happened, and nothing of the script is alive when it does."""
    arena.script(BY_NAME[name].source)
    with arena.runner(mode) as runner:
        run = Background(runner, timeout=60)
        run.await_ready()
        os.kill(launcher_pid(runner) if part == "launcher" else warden_pid(runner), signal.SIGKILL)
        result = run.result(within=5)
        left = arena.survivors()
        assert not left, f"alive when the result came: {describe(left)}"
        assert result.termination is Termination.CANCELLED
        if part == "launcher":
            assert result.error is not None
            assert result.error.rule == "launcher-died"
        arena.assert_dead()
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
@pytest.mark.parametrize("name", ["ignores-term", "daemon", *FEW])
def test_the_launcher_and_the_warden_are_killed_together(arena: Arena, name: str, mode: str) -> None:
    """The call returns and nothing is alive: an init dies with them, and a group is ended by the owner.

    Without confinement a member other than the leader may live on: `processes` is `partial` there.
    """
    arena.script(BY_NAME[name].source)
    with arena.runner(mode) as runner:
        run = Background(runner, timeout=60)
        run.await_ready()
        warden, launcher = warden_pid(runner), launcher_pid(runner)
        os.kill(warden, signal.SIGSTOP)  # so that neither can act on the death of the other
        os.kill(launcher, signal.SIGKILL)
        os.kill(warden, signal.SIGKILL)
        result = run.result(within=10)
        assert result.termination is Termination.CANCELLED
        assert result.error is not None
        if mode != "passthrough":
            arena.assert_dead(why=name)


def test_ending_a_world_returns_when_all_of_it_is_dead(arena: Arena) -> None:
    """The init is killed by the owner, which waits for what it takes with it."""
    arena.script(BY_NAME["daemon"].source)
    with arena.runner("level-2") as runner:
        for _ in range(5):
            ready = threading.Event()
            handle = runner.start(Call("demo", timeout=60), on_output=lambda *_, ready=ready: ready.set())
            assert ready.wait(20)
            assert eventually(lambda handle=handle: handle.pid is not None)
            assert arena.survivors()
            end_world(handle.pid)
            assert not arena.survivors()
            assert handle.wait(20).termination is Termination.SIGNALED
    arena.assert_clean()


def test_the_owner_ends_the_world_of_a_run_itself(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """With launcher and warden killed together, its own last look is at the init that the launcher had named."""
    arena.script(BY_NAME["ignores-term"].source)
    ended: list[int] = []
    monkeypatch.setattr(skillrun.launch.drive, "end_world", lambda pid: (ended.append(pid), end_world(pid)))
    with arena.runner("level-2") as runner:
        handle = runner.start(Call("demo", timeout=60))
        assert eventually(lambda: bool(arena.survivors()) and handle.pid is not None)
        warden, launcher = warden_pid(runner), launcher_pid(runner)
        os.kill(warden, signal.SIGSTOP)
        os.kill(launcher, signal.SIGKILL)
        os.kill(warden, signal.SIGKILL)
        assert handle.wait(20).termination is Termination.CANCELLED
        assert ended == [handle.pid]
        arena.assert_dead()


def test_ending_a_world_spares_who_is_no_init() -> None:
    """A number that changed hands meanwhile is not enough to be killed, and one that is nobody's is no error."""
    stranger = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    try:
        end_world(stranger.pid)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
    end_world(stranger.pid)


def test_ending_a_group_spares_what_is_not_confined() -> None:
    """A number that changed hands meanwhile is not enough to be killed: only what runs under a filter is."""
    stranger = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    try:
        end_group(stranger.pid)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("mode", LEVELS)
def test_the_launcher_is_killed_and_much_is_left_to_bury(arena: Arena, mode: str) -> None:
    """Three hundred processes take the warden a while: the result waits for the proof, not for the first sign."""
    source = BY_NAME["daemon"].source.replace(
        "daemon(); ready(); rest()",
        "[fork(lambda: time.sleep(20), session=True) for _ in range(300)]; ready(); rest()",
    )
    arena.script(source)
    # More than the default of 256, which would end the run within a tenth of a second.
    arena.ceiling.write_text(arena.ceiling.read_text() + "  limits: {processes: 1000}\n")
    with arena.runner(mode) as runner:
        run = Background(runner, timeout=60)
        run.await_ready()
        members = arena.survivors()
        assert len(members) > 300
        os.kill(launcher_pid(runner), signal.SIGKILL)
        result = run.result(within=10)
        left = [pid for pid in members if state(pid) not in {"", "Z", "X"}]
        assert not left, f"{len(left)} alive when the result came"
        assert result.error is not None
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
def test_launcher_and_warden_are_killed_and_members_flood_on(arena: Arena, mode: str) -> None:
    """Nobody is left to end them, and they write without a pause: the call returns all the same."""
    flood = "def flood():\n    block = b'y' * 65536\n    while not over():\n        os.write(1, block)\n"
    arena.script(
        BY_NAME["daemon"].source.replace(
            "daemon(); ready(); rest()",
            f"{flood}deaf()\nready()\n[daemon(flood) for _ in range(6)]\nrest()\n",
        )
    )
    with arena.runner(mode) as runner:
        run = Background(runner, timeout=60)
        run.await_ready()
        assert eventually(lambda: run.watch.seen > 1 << 20)
        warden, launcher = warden_pid(runner), launcher_pid(runner)
        os.kill(warden, signal.SIGSTOP)
        os.kill(launcher, signal.SIGKILL)
        os.kill(warden, signal.SIGKILL)
        assert run.result(within=5).error is not None


@pytest.mark.parametrize("mode", LEVELS)
def test_the_launcher_is_killed_at_any_moment(arena: Arena, mode: str) -> None:
    """Between a request and its result there is no moment at which its death leaves a call, a process or a folder."""
    seed = int(os.environ.get("SKILLRUN_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    random_ = random.Random(seed)
    arena.script(BY_NAME["leader-exits-daemon-holds-stdout"].source)
    for turn in range(int(os.environ.get("SKILLRUN_ROUNDS", "8"))):
        with arena.runner(mode) as runner:
            runner.launcher.start()
            pid = launcher_pid(runner)
            run = Background(runner, timeout=30)
            time.sleep(random_.random() * 0.06)
            os.kill(pid, signal.SIGKILL)
            try:
                result = run.result(within=8)
            except SkillrunError:
                continue
            except Exception as problem:  # noqa: BLE001 - named with its seed
                pytest.fail(f"seed {seed}, turn {turn}: {problem!r}")
            finally:
                assert not arena.survivors(), f"seed {seed}, turn {turn}: {describe(arena.survivors())}"
            # Killed too early or too late, it was replaced or not needed: then the run is a whole one.
            whole = (result.termination, result.exit_code, run.watch.head) == (
                Termination.EXITED,
                0,
                b"ready\n",
            )
            assert whole or result.error is not None, f"seed {seed}, turn {turn}: {result.termination}"
    arena.assert_clean()


@pytest.mark.parametrize(
    ("mode", "part"),
    [
        *((mode, part) for mode in LEVELS for part in ("launcher", "warden", "both")),
        ("level-1", "spare"),
        ("level-2", "spare"),  # an unconfined run has none
    ],
)
def test_parts_killed_between_runs_are_replaced(arena: Arena, part: str, mode: str) -> None:
    """The next run works, as often as it happens, and leaves no zombie, folder or descriptor."""
    arena.script("print('fine')\n")
    with arena.runner(mode) as runner:
        for turn in range(3):
            result = runner.run("demo", "go.py")
            assert (result.error, result.stdout.text) == (None, "fine\n")
            # A launcher that lives on has the next run's world built as well, once the same came twice.
            ready = 2 if (mode, part) == ("level-2", "spare") and turn else 1
            assert mode == "passthrough" or eventually(lambda ready=ready: len(spare_pids(runner)) == ready)
            victims = {
                "launcher": [launcher_pid(runner)],
                "warden": [warden_pid(runner)],
                "both": [warden_pid(runner), launcher_pid(runner)],
                "spare": spare_pids(runner),
            }[part]
            assert victims
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            assert eventually(lambda gone=victims: all(state(pid) in {"", "Z"} for pid in gone))
            time.sleep(0.05)
        result = runner.run("demo", "go.py")
        assert (result.error, result.stdout.text) == (None, "fine\n")
        roots = list(arena.temporary.glob("skillrun-*/skillrun-*"))
        assert roots == [runner.launcher.scratch_root], "one scratch root, the new launcher's"
    arena.assert_clean()


def test_the_spare_is_killed_in_the_moment_it_is_wanted(arena: Arena) -> None:
    """No sleep between: the launcher may not know yet. Every run either works or ends with a named error."""
    arena.script("print('fine')\n")
    with arena.runner("level-1") as runner:
        runner.launcher.start()
        for _ in range(25):
            for pid in spare_pids(runner):
                os.kill(pid, signal.SIGKILL)
            result = runner.run("demo", "go.py")
            if result.error is None:
                assert (result.termination, result.stdout.text) == (Termination.EXITED, "fine\n")
    arena.assert_clean()


def test_a_leader_killed_before_its_exec_is_not_taken_for_the_script(arena: Arena) -> None:
    """The spare is stopped, takes the plan, and is killed: nothing of the script ran, so that is no `signaled`."""
    arena.script("print('fine')\n")
    with arena.runner("level-1") as runner:
        runner.run("demo", "go.py")
        assert eventually(lambda: len(spare_pids(runner)) == 1)
        (spare,) = spare_pids(runner)
        assert eventually(lambda: state(spare) == "S")
        os.kill(spare, signal.SIGSTOP)
        run = Background(runner, timeout=10)
        time.sleep(0.2)
        os.kill(spare, signal.SIGKILL)
        result = run.result(within=5)
        assert result.termination is Termination.FAILED_TO_START
    arena.assert_clean()


def test_a_stopped_spare_costs_one_run_its_deadline(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that never gets to the exec is ended by the same clock as a script."""
    set_grace(monkeypatch, 0.2)
    arena.script("print('fine')\n")
    with arena.runner("level-1") as runner:
        runner.run("demo", "go.py")
        assert eventually(lambda: len(spare_pids(runner)) == 1)
        (spare,) = spare_pids(runner)
        assert eventually(lambda: state(spare) == "S")
        os.kill(spare, signal.SIGSTOP)
        before = time.monotonic()
        result = runner.run("demo", "go.py", timeout=0.3)
        assert time.monotonic() - before < 2
        assert result.termination is not Termination.EXITED
        assert runner.run("demo", "go.py").stdout.text == "fine\n"
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
def test_many_threads_lose_the_launcher_at_once(arena: Arena, mode: str) -> None:
    """Each call ends once: with its output, with `launcher-died`, or with a SkillrunError. The next ones work."""
    arena.script("import time\nprint('fine', flush=True)\ntime.sleep(0.05)\n")
    wrong: list[Any] = []
    stop = threading.Event()
    fine = [0]

    def work(runner: Any) -> None:
        while not stop.is_set():
            try:
                result = runner.run("demo", "go.py", timeout=20)
            except SkillrunError:
                continue
            except BaseException as problem:  # noqa: BLE001 - collected for the test's own thread
                wrong.append(problem)
                return
            if result.error is None and (result.termination, result.stdout.text) != (
                Termination.EXITED,
                "fine\n",
            ):
                wrong.append(result)
            elif result.error is not None and result.error.rule != "launcher-died":
                wrong.append(result.error)
            else:
                fine[0] += 1

    with arena.runner(mode) as runner:
        runner.launcher.start()
        threads = [threading.Thread(target=work, args=(runner,), daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        for _ in range(4):
            time.sleep(0.25)
            with contextlib.suppress(KeyError, OSError):
                os.kill(launcher_pid(runner), signal.SIGKILL)
        eventually(lambda: fine[0] > 8, 20.0)
        stop.set()
        for thread in threads:
            thread.join(10)
        assert not [thread for thread in threads if thread.is_alive()], "a call is stuck"
        assert not wrong, wrong[:3]
        assert fine[0] > 8
        assert runner.run("demo", "go.py").stdout.text == "fine\n"
    arena.assert_clean()


@pytest.mark.slow
@pytest.mark.parametrize("mode", LEVELS)
def test_a_launcher_that_hangs_is_given_up(arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """A stopped launcher answers nothing: it is killed some seconds after the deadline and replaced."""
    set_grace(monkeypatch, 0.2)
    monkeypatch.setattr("skillrun.launch.drive._MARGIN", 1.0)
    arena.script(BY_NAME["daemon"].source)
    arena.script("print('fine')\n", name="next.py")
    with arena.runner(mode) as runner:
        run = Background(runner, timeout=0.5)
        run.await_ready()
        os.kill(launcher_pid(runner), signal.SIGSTOP)
        result = run.result(within=8)
        assert result.error is not None
        arena.assert_dead()
        assert runner.run("demo", "next.py").stdout.text == "fine\n"
    arena.assert_clean()
