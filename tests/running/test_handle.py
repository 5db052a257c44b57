"""A handle: process id, waiting, cancelling, and output while it comes."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest
from adversaries import BY_NAME
from arena import LEVELS, eventually, set_grace, state

from skillrun import AdmissionError, Call, SkillrunError, Termination, UsageError

if TYPE_CHECKING:
    from arena import Arena


@pytest.mark.parametrize("mode", LEVELS)
def test_a_run_beside_its_caller(arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """The process id is a living process's while it runs; `wait` can give up; cancel ends the tree."""
    set_grace(monkeypatch, 0.1)
    arena.script(BY_NAME["daemon"].source)
    told: list[bytes] = []
    with arena.runner(mode) as runner:
        run = runner.start(Call("demo", timeout=60), on_output=lambda _, chunk: told.append(chunk))
        assert eventually(lambda: b"".join(told) == b"ready\n" and run.pid is not None, 10)
        assert state(run.pid) not in {"", "Z"}
        with pytest.raises(TimeoutError, match="not over"):
            run.wait(0.01)
        assert not run.done
        run.cancel()
        result = run.wait(5)
        arena.assert_dead()
        run.cancel()  # too late is harmless
    assert result.termination is Termination.CANCELLED
    assert result.stdout.text == "ready\n"
    assert run.done
    assert run.wait() is result
    arena.assert_clean()


def test_output_comes_while_the_script_runs(arena: Arena) -> None:
    """Both streams are told by name, in order, before the end; the result has the same bytes."""
    arena.script(
        "import os, sys\nos.write(1, b'one')\nos.write(2, b'two')\nsys.stdin.read(1)\n"
        "while not os.path.exists(os.environ['WORKSPACE'] + '/out/go'): pass\nos.write(1, b'three')"
    )
    told: list[tuple[str, bytes]] = []
    with arena.runner() as runner:
        run = runner.start(Call("demo"), on_output=lambda *what: told.append(what))
        assert eventually(lambda: len(told) == 2, 10)
        assert not run.done
        (arena.out / "go").touch()
        result = run.wait(10)
    assert sorted(told[:2]) == [("stderr", b"two"), ("stdout", b"one")]
    assert told[2:] == [("stdout", b"three")]
    assert (result.stdout.text, result.stderr.text) == ("onethree", "two")
    arena.assert_clean()


def test_a_slow_callback_holds_the_script_back(arena: Arena) -> None:
    """What is not taken is not read: a callback that waits costs no memory, and loses nothing."""
    arena.script("import os\nfor _ in range(64): os.write(1, b'x' * 65536)")
    seen = 0

    def slow(_: str, chunk: bytes) -> None:
        nonlocal seen
        time.sleep(0.002)
        seen += len(chunk)

    with arena.runner() as runner:
        result = runner.start(Call("demo"), on_output=slow).wait(60)
    assert result.ok
    assert seen == result.stdout.bytes == 64 * 65536
    arena.assert_clean()


@pytest.mark.parametrize("mode", LEVELS)
def test_a_callback_that_fails_ends_the_run(arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """What it raised comes out of `wait`, and nothing is left."""
    set_grace(monkeypatch, 0.1)
    arena.script(BY_NAME["floods-both-streams"].source)

    def broken(_: str, chunk: bytes) -> None:
        raise ValueError(f"a callback's own {len(chunk)}")

    with arena.runner(mode) as runner:
        with pytest.raises(ValueError, match="a callback's own"):
            runner.start(Call("demo", timeout=60), on_output=broken).wait(10)
        arena.assert_dead()
    arena.assert_clean()


def test_a_callback_whose_reader_is_gone_is_a_closed_pipe(arena: Arena) -> None:
    """OSError from a callback ends the stream as in any pipe: the script gets SIGPIPE."""
    arena.script("#!/bin/sh\nwhile :; do echo line; done\n", name="go.sh")

    def gone(_: str, __: bytes) -> None:
        raise BrokenPipeError

    with arena.runner() as runner:
        result = runner.start(Call("demo", timeout=20), on_output=gone).wait(30)
    assert result.termination in {Termination.SIGNALED, Termination.EXITED}
    assert not result.ok
    arena.assert_clean()


def test_cancelled_before_its_turn(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started, `wait` says so, and the place in the queue is free again."""
    set_grace(monkeypatch, 0.1)
    arena.script("print('ready', flush=True)\nimport time; time.sleep(30)")
    with arena.runner(at_once=1, waiting=1) as runner:
        first = runner.start(Call("demo"))
        second = runner.start(Call("demo"))
        second.cancel()
        with pytest.raises(AdmissionError, match="before it was its turn"):
            second.wait(1)
        third = runner.start(Call("demo", timeout=0.2))
        first.cancel()
        assert first.wait(10).termination is Termination.CANCELLED
        assert third.wait(10).termination is Termination.TIMED_OUT
    arena.assert_clean()


def test_what_run_would_raise_comes_out_of_wait(arena: Arena) -> None:
    """A skill that is not there is the same error here as there, and each time it is waited for."""
    with arena.runner() as runner:
        run = runner.start(Call("nobody"))
        for _ in range(2):
            with pytest.raises(UsageError, match="nobody"):
                run.wait(10)
    arena.assert_clean()


def test_no_thread_can_be_started(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without threads left the call ends with a named error, and its place goes to the next."""
    arena.script("#!/bin/sh\necho fine\n", name="go.sh")
    with arena.runner(at_once=1) as runner:

        def never(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", never)
            with pytest.raises(SkillrunError, match="no thread could be started") as refused:
                runner.start(Call("demo")).wait(1)
            assert refused.value.problem.rule == "out-of-resources"
        assert runner.run("demo").ok
    arena.assert_clean()


def test_a_cancel_never_reaches_another_descriptor(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancels that come while runs end write to no descriptor that was opened in the meantime."""
    set_grace(monkeypatch, 0.05)
    arena.script("#!/bin/sh\nexit 0\n", name="go.sh")
    stop = threading.Event()
    got: list[bytes] = []

    def strangers() -> None:
        while not stop.is_set():
            reading, writing = os.pipe()
            os.set_blocking(reading, False)
            time.sleep(0.0001)
            with contextlib.suppress(BlockingIOError):
                got.append(os.read(reading, 64))
            os.close(reading)
            os.close(writing)

    with arena.runner() as runner:
        thread = threading.Thread(target=strangers)
        thread.start()
        try:
            for _ in range(40):
                run = runner.start(Call("demo"))
                while not run.done:
                    run.cancel()
        finally:
            stop.set()
            thread.join()
    assert not got
    arena.assert_clean()
