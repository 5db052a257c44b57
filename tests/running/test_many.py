"""Many calls: one reply each, in the order of the calls, a few at once, here or by an executor."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import threading
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from arena import Faults, eventually, set_grace

import skillrun.running.elsewhere
from skillrun import Call, ConfigError, Flags, Host, Progress, Reply, SkillrunError, Termination, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from arena import Arena


def calls(count: int) -> list[Call]:
    """Give calls that end in another order than they begin."""
    return [Call("demo", arguments=(str(n), "0.1" if n % 3 == 0 else "0"), timeout=60) for n in range(count)]


def echo(arena: Arena) -> None:
    """Write a script that waits and repeats its first argument."""
    arena.script('#!/bin/sh\nsleep "$2"\necho "$1"\n', name="go.sh")


def texts(found: list[Reply]) -> list[str]:
    """Give what was printed, or the rule of the error."""
    return [
        reply.result.stdout.text.strip() if reply.result else reply.error.problem.rule if reply.error else ""
        for reply in found
    ]


def test_replies_come_in_the_order_of_the_calls(arena: Arena) -> None:
    """Each reply belongs to its call; progress is told after each, with how many there are."""
    echo(arena)
    told: list[Progress] = []
    with arena.runner() as runner:
        found = runner.run_many(calls(12), limit=4, on_progress=told.append)
    assert texts(found) == [str(n) for n in range(12)]
    assert [reply.index for reply in found] == list(range(12))
    assert [reply.call for reply in found] == calls(12)
    assert [(one.ended, one.total) for one in told] == [(n, 12) for n in range(1, 13)]
    assert {one.reply.index for one in told} == set(range(12))
    assert found[0].ok
    arena.assert_clean()


def test_a_call_that_can_not_be_made_loses_no_other(arena: Arena) -> None:
    """Its reply has the error that `run` raises."""
    echo(arena)
    with arena.runner() as runner:
        found = runner.run_many([Call("nobody"), *calls(2), Call("demo", "no.sh")], limit=2)
    assert texts(found) == ["skill-unknown", "0", "1", "script-unknown"]
    assert not found[0].ok
    arena.assert_clean()


def test_calls_are_taken_only_when_there_is_room(arena: Arena) -> None:
    """An endless source of calls is read no further than the limit, and never needs a length."""
    echo(arena)
    taken = 0

    def source() -> Iterator[Call]:
        nonlocal taken
        while True:
            taken += 1
            yield Call("demo", arguments=(str(taken), "0"))

    with arena.runner() as runner:
        replies = runner.replies(source(), limit=3)
        ahead = [taken - n for n, _ in zip(range(1, 11), replies, strict=False)]
        replies.close()  # type: ignore[attr-defined]
        assert max(ahead) <= 4
        arena.assert_dead()
    arena.assert_clean()


@pytest.mark.parametrize("how", ["close", "callback", "source"])
def test_whoever_stops_listening_ends_what_is_under_way(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Leaving early, an exception of the callback, and one of the source: no run goes on."""
    set_grace(monkeypatch, 0.1)
    echo(arena)

    def source() -> Iterator[Call]:
        yield from [Call("demo", arguments=("short", "0")), Call("demo", arguments=("long", "50"))]
        if how == "source":
            raise KeyError(how)
        yield from [Call("demo", arguments=("long", "50"))] * 3

    def progress(_: Progress) -> None:
        raise KeyError(how)

    with arena.runner() as runner:
        before = time.monotonic()
        if how == "close":
            replies = runner.replies(source(), limit=3)
            next(replies)
            replies.close()  # type: ignore[attr-defined]
        else:
            with pytest.raises(KeyError):
                runner.run_many(source(), limit=3, on_progress=progress if how == "callback" else None)
        assert time.monotonic() - before < 10
        arena.assert_dead()
    arena.assert_clean()


def test_ctrl_c_ends_many_calls(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """KeyboardInterrupt comes out of `run_many` when nothing of any call is left."""
    set_grace(monkeypatch, 0.1)
    echo(arena)
    with arena.runner() as runner:
        runner.launcher.start()
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            runner.run_many([Call("demo", arguments=("x", "50"))] * 20, limit=8)
        arena.assert_dead()
    arena.assert_clean()


def test_a_limit_that_makes_no_call_is_refused(arena: Arena) -> None:
    """Zero at once would wait for ever."""
    with arena.runner() as runner, pytest.raises(UsageError):
        runner.run_many([], limit=0)


EXECUTORS: dict[str, Callable[[], Executor]] = {
    "threads": lambda: ThreadPoolExecutor(2),
    "spawned processes": lambda: ProcessPoolExecutor(2, multiprocessing.get_context("spawn")),
    "forked processes": lambda: ProcessPoolExecutor(2, multiprocessing.get_context("fork")),
}


@pytest.mark.parametrize("kind", EXECUTORS)
def test_an_executor_makes_the_calls(arena: Arena, kind: str) -> None:
    """The same replies as here, results pickled whole; the workers' launchers end with the workers."""
    echo(arena)
    with arena.runner() as runner:
        here = runner.run_many(calls(6), limit=3)
        with EXECUTORS[kind]() as executor:
            there = runner.run_many([*calls(6), Call("nobody")], limit=3, executor=executor)
        assert texts(there) == [*texts(here), "skill-unknown"]
        first = there[0].result
        assert first is not None
        assert here[0].result is not None
        assert (first.grant, first.guarantees) == (here[0].result.grant, here[0].result.guarantees)
    skillrun.running.elsewhere._runner.cache_clear()
    arena.clear() if kind == "threads" else None
    assert eventually(lambda: not arena.everything(), 5)


def test_dask_makes_the_calls(arena: Arena) -> None:
    """Dask's executor is one of them: this is how calls leave one machine."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    echo(arena)
    with arena.runner() as runner:
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
            ) as cluster,
            distributed.Client(cluster) as client,
            client.get_executor() as executor,
        ):
            found = runner.run_many([*calls(8), Call("nobody")], limit=4, executor=executor)
        assert texts(found) == [*map(str, range(8)), "skill-unknown"]
    assert eventually(lambda: not arena.everything(), 10)


def test_a_worker_that_dies_loses_its_calls_by_name(arena: Arena) -> None:
    """They are not made again, and every call has a reply."""
    arena.script('#!/bin/sh\necho made >> "$WORKSPACE/out/made-$1"\nsleep 20\n', name="go.sh")
    with arena.runner() as runner:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
            pool = concurrent.futures.ThreadPoolExecutor(1)
            made = pool.submit(
                runner.run_many,
                [Call("demo", arguments=(str(n),)) for n in range(3)],
                limit=2,
                executor=executor,
            )
            assert eventually((arena.out / "made-0").exists, 20)
            for pid in list(executor._processes):
                os.kill(pid, signal.SIGKILL)
            found = made.result(20)
            pool.shutdown()
        assert texts(found) == ["worker-lost"] * 3
        assert (arena.out / "made-0").read_text() == "made\n"
        assert eventually(lambda: not arena.everything(), 5)
    assert not (arena.out / "made-1").exists()


def test_a_worker_that_reads_another_ceiling_runs_nothing(arena: Arena) -> None:
    """What limits a run is what its caller saw; a changed file is an error with a name, not another limit."""
    echo(arena)
    with arena.runner() as runner:
        arena.ceiling.write_text(arena.ceiling.read_text() + "  network: true\n")
        with EXECUTORS["spawned processes"]() as executor:
            found = runner.run_many(calls(2), executor=executor)
    assert texts(found) == ["worker-ceiling"] * 2
    assert isinstance(found[0].error, ConfigError)


def test_a_worker_of_another_version_runs_nothing(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two versions may mean two things by the same plan."""
    echo(arena)
    with arena.runner() as runner:
        monkeypatch.setattr(skillrun.running.elsewhere, "__version__", "0.0.9")
        with EXECUTORS["threads"]() as executor:
            assert texts(runner.run_many(calls(1), executor=executor)) == ["worker-version"]


def test_a_worker_is_told_no_secret_of_the_caller(arena: Arena) -> None:
    """Of the environment only what a run could get is sent; a variable granted by a flag is refused."""
    echo(arena)
    environ = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "API_KEY": "hunter2", "TZ": "UTC"}
    host = Host(temporary=arena.temporary, environ=environ)
    with arena.runner(host=host) as runner:
        recipe = skillrun.running.elsewhere.recipe_of(runner, runner._choice, runner._made_from)
        assert b"hunter2" not in recipe
        sent = pickle.loads(recipe).host.environ
        assert sent == {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        with EXECUTORS["threads"]() as executor:
            found = runner.run_many([Call("demo", flags=Flags(env=("API_KEY",)))], executor=executor)
    assert texts(found) == ["flag-env-elsewhere"]


def test_what_travels_can_be_pickled(arena: Arena) -> None:
    """Calls, errors with all their problems, and every kind of result come back equal."""
    echo(arena)
    arena.script("import time; time.sleep(30)", skill="slow")
    faults = Faults()
    with arena.runner() as runner:
        results = [runner.run("demo", arguments=["1", "0"]), runner.run("slow", timeout=0.05)]
        manifest = arena.skills / "slow" / "SKILL.md"
        manifest.write_text(manifest.read_text().replace("${workspace}/out", "/elsewhere"))
        results.append(runner.run("slow", strict=True))
        for value in (*calls(1), *results, Call(runner.find("demo"))):
            with faults.of(value):
                assert pickle.loads(pickle.dumps(value)) == value
        with pytest.raises(UsageError) as wrong:
            runner.run("nobody")
    copy = pickle.loads(pickle.dumps(wrong.value))
    assert isinstance(copy, SkillrunError)
    assert (type(copy), copy.problems, str(copy)) == (UsageError, wrong.value.problems, str(wrong.value))
    assert results[2].termination is Termination.REFUSED
    faults.assert_none()


def test_a_placeholder_outlives_the_run_it_was_made_for(arena: Arena) -> None:
    """A write path made for one run stays while another may write there, and goes when nobody has used it."""
    arena.script(
        "import os, sys, time\nprint('ready', flush=True)\n"
        "while not os.path.exists(os.environ['WORKSPACE'] + '/go-' + sys.argv[1]): time.sleep(0.01)\n"
        "if sys.argv[1] == 'b': open(os.environ['WORKSPACE'] + '/out/b', 'w').close()\n"
    )
    arena.out.rmdir()
    go: Path = arena.workspace
    with arena.runner() as runner:
        first = runner.start(Call("demo", arguments=("a",)))
        assert eventually(lambda: first.pid is not None and arena.out.exists(), 10)
        second = runner.start(Call("demo", arguments=("b",)))
        assert eventually(lambda: second.pid is not None, 10)
        (go / "go-a").touch()
        assert first.wait(10).ok
        assert arena.out.exists(), "the other run has a grant for it"
        (go / "go-b").touch()
        result = second.wait(10)
        assert result.ok, result.stderr.text
        assert (arena.out / "b").exists()
        (arena.out / "b").unlink()
        arena.out.rmdir()
        assert runner.run("demo", arguments=["a"]).ok
        assert not arena.out.exists(), "nobody used it"
    arena.out.mkdir()
    arena.assert_clean()
