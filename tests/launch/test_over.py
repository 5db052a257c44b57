"""The last word but one: the owner goes on when only init is left, and leaves with the proof that init is gone too."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from arena import eventually, launcher_pid, state, warden_pid

import skillrun.running.pipeline
from skillrun import Call
from skillrun.launch.capture import Keep
from skillrun.launch.drive import Drive
from skillrun.launch.launcher import Sent
from skillrun.sandbox.backend import LaunchPlan
from skillrun.sandbox.guarantee import UNCONFINED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from arena import Arena

ENDED = {"event": "ended", "status": 0, "reason": None, "leftovers": 0, "cpu": 0.1, "rss": 10}
OVER = {**ENDED, "event": "over", "status": 256}
WIRE = {"mode": "init", "timeout": 60, "frame": {}, "scratch": None}
MOMENT = 0.2


class Stage:
    """A run of which this test is the launcher, and a sleeping program the init."""

    def __init__(self, root: Path) -> None:
        """Start the program."""
        self.scratch_root = root
        self.init = subprocess.Popen(["/bin/sleep", "60"])
        self.control, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.words = -1
        self.entered, self.left = threading.Event(), threading.Event()
        self.seen: Any = None
        self.raised: BaseException | None = None
        self.body = self.meanwhile = lambda: None
        self.on_start: Callable[[int], None] | None = None
        self.thread = threading.Thread(target=self._run)

    def request(self, _plan: LaunchPlan, pipes: list[int], **_: object) -> Sent:
        """Take the pipes, of which the first is for the words of an init."""
        self.words = pipes[0]
        for descriptor in pipes[1:]:
            os.close(descriptor)
        return Sent(self._theirs, self._theirs)

    def lost(self, *_: object, **__: object) -> bool:
        """Nobody is left who could say more."""
        return True

    def start(self, *, pidfd: bool = True) -> None:
        """Start the run, and tell which process its init is."""
        self.thread.start()
        assert eventually(lambda: self.words >= 0)
        held = [os.pidfd_open(self.init.pid)] if pidfd else []
        message = {"event": "leader", "pid": self.init.pid}
        socket.send_fds(self.control, [json.dumps(message).encode()], held)
        for descriptor in held:
            os.close(descriptor)
        time.sleep(0.05)

    def say(self, words: bytes) -> None:
        """Say something as the init does, and let go of the pipe."""
        os.write(self.words, words)
        os.close(self.words)

    def _run(self) -> None:
        plan = LaunchPlan("linux", 2, UNCONFINED, WIRE, "{}")
        try:
            drive = Drive(
                self,  # type: ignore[arg-type]
                plan,
                b"",
                Keep(0),
                Keep(0),
                meanwhile=self.meanwhile,
                on_start=self.on_start,
            )
            with drive.running() as outcome:
                self.seen = outcome.ended
                self.entered.set()
                self.body()
        except BaseException as problem:  # noqa: BLE001 - judged by the test
            self.raised = problem
        self.left.set()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Give a stage, and clear it."""
    one = Stage(tmp_path)
    yield one
    one.init.kill()
    one.init.wait()
    one.control.close()
    if one.thread.ident:
        one.thread.join(20)


def test_the_owner_goes_on_and_leaves_with_the_proof(stage: Stage) -> None:
    """What init said is there at once; the run is left only when the kernel says that it is dead."""
    stage.start()
    stage.say(json.dumps(OVER).encode())
    assert stage.entered.wait(10)
    assert stage.seen == OVER
    assert not stage.left.wait(MOMENT), "init is alive"
    stage.init.kill()
    assert stage.left.wait(10)
    assert stage.raised is None


def test_without_a_pidfd_the_launcher_is_the_proof(stage: Stage) -> None:
    """An owner that had no descriptor for it waits for the launcher's own last word."""
    stage.start(pidfd=False)
    stage.say(json.dumps(OVER).encode())
    assert stage.entered.wait(10)
    assert not stage.left.wait(MOMENT)
    stage.control.send(json.dumps(ENDED).encode())
    assert stage.left.wait(10)
    assert stage.seen == OVER


@pytest.mark.parametrize("problem", [KeyboardInterrupt, RuntimeError])
def test_what_is_raised_meanwhile_waits_for_the_proof(stage: Stage, problem: type[BaseException]) -> None:
    """An interrupt, or a fault, while it is looked at what is left."""

    def fail() -> None:
        raise problem

    stage.body = fail  # type: ignore[assignment]
    stage.start()
    stage.say(json.dumps(OVER).encode())
    assert stage.entered.wait(10)
    assert not stage.left.wait(MOMENT)
    stage.init.kill()
    assert stage.left.wait(10)
    assert isinstance(stage.raised, problem)


def test_an_interrupt_before_that_waits_for_the_end(stage: Stage) -> None:
    """The script ends by itself while it is cancelled: that only init is left is not the end yet."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    stage.meanwhile = interrupt  # type: ignore[assignment]
    stage.start()
    stage.say(json.dumps(OVER).encode())
    assert not stage.left.wait(MOMENT)
    stage.control.send(json.dumps(ENDED).encode())
    assert stage.left.wait(10)
    assert isinstance(stage.raised, KeyboardInterrupt)


def test_the_start_is_announced_before_the_end(stage: Stage) -> None:
    """What init says may come before what the launcher said: who waits for the process id gets it all the same."""
    told: list[int] = []
    stage.on_start = told.append
    stage.start()
    stage.say(json.dumps(OVER).encode())
    assert not stage.entered.wait(MOMENT)
    stage.control.send(json.dumps({"event": "started", "pid": 77}).encode())
    assert stage.entered.wait(10)
    assert (told, stage.seen) == ([77], OVER)


@pytest.mark.parametrize("pidfd", [True, False])
def test_the_death_of_another_leader_is_no_proof(stage: Stage, *, pidfd: bool) -> None:
    """The first one was dead when it was given the plan; the second one, told with or without a pidfd, is the init."""
    dead = subprocess.Popen(["/bin/true"])
    held = os.pidfd_open(dead.pid)
    first = json.dumps({"event": "leader", "pid": dead.pid}).encode()

    def late() -> None:  # both are unread when the init speaks
        socket.send_fds(stage.control, [first], [held])
        with contextlib.ExitStack() as stack:
            descriptors = [os.pidfd_open(stage.init.pid)] if pidfd else []
            for descriptor in descriptors:
                stack.callback(os.close, descriptor)
            second = json.dumps({"event": "leader", "pid": stage.init.pid}).encode()
            socket.send_fds(stage.control, [second], descriptors)
        stage.say(json.dumps(OVER).encode())

    stage.meanwhile = late
    stage.thread.start()
    assert stage.entered.wait(10), stage.raised
    dead.wait()
    os.close(held)
    assert not stage.left.wait(MOMENT), "init is alive"
    if not pidfd:
        stage.control.send(json.dumps(ENDED).encode())
    stage.init.kill()
    assert stage.left.wait(10)


def test_the_word_of_an_init_counts_when_the_launcher_has_died_behind_it(stage: Stage) -> None:
    """The end of the launcher's socket is there before the word is taken: the script had ended by itself all the same."""

    def late() -> None:
        message = {"event": "leader", "pid": stage.init.pid}
        held = os.pidfd_open(stage.init.pid)
        socket.send_fds(stage.control, [json.dumps(message).encode()], [held])
        os.close(held)
        stage.say(json.dumps(OVER).encode())
        stage.control.shutdown(socket.SHUT_RDWR)

    stage.meanwhile = late
    stage.thread.start()
    assert stage.entered.wait(10)
    assert stage.seen == OVER
    assert not stage.left.wait(MOMENT)
    stage.init.kill()
    assert stage.left.wait(10)


def test_a_launcher_that_dies_meanwhile_changes_nothing(stage: Stage) -> None:
    """The script had ended by itself; its init goes with the launcher, and is waited for."""
    stage.start()
    stage.say(json.dumps(OVER).encode())
    assert stage.entered.wait(10)
    stage.control.shutdown(socket.SHUT_RDWR)
    assert not stage.left.wait(MOMENT)
    stage.init.kill()
    assert stage.left.wait(10)
    assert stage.seen == OVER


@pytest.mark.parametrize(
    "words",
    [b"", b"x", b'{"event": "over"}', json.dumps(ENDED).encode(), json.dumps({**OVER, "rss": -1}).encode()],
)
def test_other_words_of_an_init_are_none(stage: Stage, words: bytes) -> None:
    """One that was killed or asked to end says nothing, and what makes no sense is not believed: the launcher's word counts."""
    stage.start()
    stage.say(words)
    assert not stage.entered.wait(MOMENT)
    stage.control.send(json.dumps({**ENDED, "reason": "timed_out"}).encode())
    assert stage.entered.wait(10)
    assert stage.seen["reason"] == "timed_out"
    assert stage.left.wait(10)


def test_an_init_that_does_not_die_is_ended(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its launcher is given up after a while, and what it had started is ended from here."""
    import skillrun.launch.drive

    ended: list[int] = []
    monkeypatch.setattr(skillrun.launch.drive, "_MARGIN", 0.3)
    monkeypatch.setattr(skillrun.launch.drive, "end_world", ended.append)
    stage.start()
    stage.say(json.dumps(OVER).encode())
    assert stage.left.wait(10)
    assert ended == [stage.init.pid]


def test_init_is_dead_when_the_result_is_there(arena: Arena) -> None:
    """Judged from outside, with init held back: what the script left is looked at before that, the result comes after."""
    arena.script("print('fine')\n")
    looked = threading.Event()
    real = skillrun.running.pipeline.violations

    def late(*arguments: Any, **named: Any) -> Any:
        looked.set()
        return real(*arguments, **named)

    with arena.runner("level-2") as runner, pytest.MonkeyPatch.context() as patch:
        patch.setattr(skillrun.running.pipeline, "violations", late)
        for _ in range(30):
            looked.clear()
            handle = runner.start(Call("demo", timeout=60))
            result = handle.wait(30)
            assert handle.pid is not None
            assert state(handle.pid) in {"", "Z", "X"}
            assert looked.is_set()
            assert (result.error, result.stdout.text) == (None, "fine\n")
    arena.assert_clean()


def test_launcher_and_warden_are_killed_when_the_script_has_ended(arena: Arena) -> None:
    """The result is the script's own: it was over, and of what was made for it nothing is left."""
    arena.script("print('fine')\n")
    real = skillrun.running.pipeline.violations

    def killing(*arguments: Any, **named: Any) -> Any:
        for pid in (warden_pid(runner), launcher_pid(runner)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return real(*arguments, **named)

    with arena.runner("level-2") as runner:
        assert runner.run("demo", timeout=60).ok
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(skillrun.running.pipeline, "violations", killing)
            result = runner.run("demo", timeout=60)
        assert (result.error, result.stdout.text) == (None, "fine\n")
        arena.assert_dead()
        assert runner.run("demo", timeout=60).ok
    arena.assert_clean()
