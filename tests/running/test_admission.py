"""Admission: at most so many at once, in the order in which they came, and a clear refusal beyond."""

from __future__ import annotations

import os
import random
import threading
from typing import TYPE_CHECKING

import pytest
from arena import Background, eventually, set_grace

from skillrun import AdmissionError, Call, SkillrunError, Termination, UsageError
from skillrun.launch.scratches import Scratches
from skillrun.running.admission import Admission, Turn

if TYPE_CHECKING:
    from arena import Arena


class Caller:
    """Somebody in the queue who notes its turn; `able` False is one who can't use it."""

    def __init__(self, name: int, log: list[int], *, able: bool = True) -> None:
        self.name, self.log, self.able = name, log, able
        self.told = 0

    def __call__(self, turn: Turn) -> bool:
        """Note the turn."""
        self.told += 1
        if turn.refusal is None and self.able:
            self.log.append(self.name)
        return self.able and turn.refusal is None


def test_first_come_first_served() -> None:
    """Whoever waits longest is next, and no more than the bound are ever inside."""
    admission, log = Admission(at_once=2, waiting=10), list[int]()
    turns = [admission.ask(Caller(number, log)) for number in range(6)]
    assert log == [0, 1]
    turns[1].leave()
    turns[1].leave()  # once only: a second time must not let another in
    assert log == [0, 1, 2]
    for turn in turns[:1] + turns[2:]:
        turn.leave()
    assert log == [0, 1, 2, 3, 4, 5]
    assert admission.ask(Caller(6, log)).inside


def test_a_full_queue_refuses_with_the_numbers() -> None:
    """The refusal says how many are under way and wait, and what to do."""
    admission, log = Admission(at_once=1, waiting=2), list[int]()
    for number in range(3):
        admission.ask(Caller(number, log))
    with pytest.raises(AdmissionError, match="1 runs are under way and 2 wait") as refused:
        admission.ask(Caller(3, log))
    assert refused.value.problem.rule == "too-many-runs"
    assert refused.value.problem.help


def test_one_who_can_not_use_its_turn_does_not_stop_the_queue() -> None:
    """The turn goes on to the next, however many of them there are."""
    admission, log = Admission(at_once=1, waiting=5_000), list[int]()
    first = admission.ask(Caller(0, log))
    for number in range(1, 3_000):
        admission.ask(Caller(number, log, able=False))
    admission.ask(Caller(3_000, log))
    first.leave()
    assert log == [0, 3_000]


def test_one_who_withdraws_is_never_called() -> None:
    """A place in the queue can be given up, and says that it was one."""
    admission, log = Admission(at_once=1, waiting=5), list[int]()
    first, second, _ = (admission.ask(Caller(number, log)) for number in range(3))
    assert second.leave()
    assert not second.leave()
    assert not first.leave()
    assert log == [0, 2]


def test_random_callers_never_exceed_the_bound() -> None:
    """Whatever the order of coming, leaving and withdrawing: the bound holds and nobody is forgotten."""
    seed = int(os.environ.get("SKILLRUN_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    dice = random.Random(seed)
    for _ in range(50):
        bound = dice.randint(1, 5)
        admission, log, turns = Admission(at_once=bound, waiting=100), list[int](), list[Turn]()
        callers: list[Caller] = []
        withdrawn: set[int] = set()
        for number in range(100):
            callers.append(Caller(number, log, able=dice.random() < 0.9))
            turns.append(admission.ask(callers[-1]))
            if dice.random() < 0.6:
                chosen = dice.randrange(len(turns))
                if turns[chosen].leave():
                    withdrawn.add(chosen)
            assert sum(turn.inside for turn in turns) <= bound, f"SKILLRUN_SEED={seed}"
        for turn in turns:
            turn.leave()
        for turn in turns:
            turn.leave()
        told = [caller.told for caller in callers]
        assert told == [0 if number in withdrawn else 1 for number in range(100)], f"SKILLRUN_SEED={seed}"
        assert log == sorted(log), f"SKILLRUN_SEED={seed}"


@pytest.mark.parametrize(("at_once", "waiting"), [(0, 1), (-1, 1), (1, -1)])
def test_a_bound_that_lets_nobody_in_is_refused(at_once: int, waiting: int) -> None:
    """Zero runs at once would be a hang."""
    with pytest.raises(UsageError):
        Admission(at_once=at_once, waiting=waiting)


def test_many_threads_at_a_small_door(arena: Arena) -> None:
    """Twenty callers with two places: all get their own result, and never more than two scripts are there."""
    arena.script(
        "import os, sys, time\nfolder = os.environ['WORKSPACE'] + '/out'\n"
        "mark = f'{folder}/in-{sys.argv[1]}'\nopen(mark, 'w').close()\n"
        "print(sum(name.startswith('in-') for name in os.listdir(folder)))\ntime.sleep(0.05)\nos.unlink(mark)\n"
    )
    seen: list[int] = []
    with arena.runner(at_once=2) as runner:

        def work(number: int) -> None:
            seen.append(int(runner.run("demo", "go.py", [str(number)]).stdout.text))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(seen) == 20
    assert max(seen) <= 2
    arena.assert_clean()


def test_a_full_runner_refuses_and_goes_on(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refused call is an error with a name; the runs that were let in are not touched by it."""
    set_grace(monkeypatch, 0.1)
    arena.script("print('ready', flush=True)\nimport time; time.sleep(30)")
    arena.script("#!/bin/sh\necho short\n", skill="short", name="go.sh")
    with arena.runner(at_once=1, waiting=1) as runner:
        first = Background(runner, timeout=2)
        first.await_ready()
        second = Background(runner, script="go.sh", skill="short")
        assert eventually(lambda: len(runner._admission._door.get().queue) == 1)
        with pytest.raises(AdmissionError, match="1 runs are under way and 1 wait"):
            runner.run("short")
        with pytest.raises(AdmissionError):
            runner.start(Call("short"))
        assert first.result(10).termination is Termination.TIMED_OUT
        assert second.result(10).ok
        assert runner.run("short").ok
    arena.assert_clean()


def test_closing_sends_away_who_waits(arena: Arena) -> None:
    """A closed runner leaves nobody waiting: not a thread, not a handle."""
    arena.script("print('ready', flush=True)\nimport time; time.sleep(30)")
    runner = arena.runner(at_once=1)
    first = Background(runner)
    first.await_ready()
    second = Background(runner)
    third = runner.start(Call("demo"))
    assert eventually(lambda: len(runner._admission._door.get().queue) == 2)
    runner.close()
    assert first.result(10).termination is Termination.CANCELLED
    with pytest.raises(AdmissionError, match="closed"):
        second.result(10)
    with pytest.raises(AdmissionError, match="closed"):
        third.wait(10)
    arena.assert_clean()


def test_a_forked_copy_has_its_own_door(arena: Arena) -> None:
    """What is under way in the parent takes no place in the copy, and its lock is not waited for."""
    arena.script("print('ready', flush=True)\nimport time; time.sleep(30)")
    arena.script("#!/bin/sh\necho short\n", skill="short", name="go.sh")
    with arena.runner(at_once=1, waiting=0) as runner:
        run = runner.start(Call("demo"))
        assert eventually(lambda: run.pid is not None)
        with runner._admission._door.get().lock:
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    code = 0 if runner.run("short").ok else 2
                    runner.close()
                finally:
                    os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert not run.done
        run.cancel()
        assert run.wait(10).termination is Termination.CANCELLED
    arena.assert_clean()


def test_closing_beside_a_run_that_has_its_turn_and_no_launcher_yet(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not start one that nobody would end."""
    arena.script("import time; time.sleep(30)")
    reached, closed = threading.Event(), threading.Event()

    def late(_: object) -> None:
        reached.set()
        assert closed.wait(20)

    monkeypatch.setattr(Scratches, "_try_again", late)
    runner = arena.runner()
    handle = runner.start(Call("demo", timeout=20))
    assert reached.wait(20)
    runner.close()
    closed.set()
    with pytest.raises(SkillrunError, match="closed"):
        handle.wait(20)
    arena.assert_clean()
