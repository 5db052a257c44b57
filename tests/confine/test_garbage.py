"""Garbage on the launcher's socket: it answers `failed` or ignores it, lives on, and later runs work.

The owner is trusted, so none of this is a way in; but a launcher that dies takes every run of the owner
with it, and a version that sends something new must get an answer and not a hang.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from arena import Faults, Holdings, children, eventually, launcher_pid

import skillrun.launch.scratches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from arena import Arena

FINE = "print('fine')\n"
MODES_OF = {"group": "level-1", "init": "level-2", "tree": "passthrough"}


def memory(words: bytes) -> int:
    """Put words into a memory file, as a plan comes."""
    descriptor = os.memfd_create("plan")
    os.write(descriptor, words)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


class _Recorder:
    """Stands before the owner's socket and remembers the last request, so that tests can spoil a real one."""

    def __init__(self, real: socket.socket) -> None:
        self.real = real
        self.terms: dict[str, Any] = {}
        self.plan: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        """Everything else is the socket's."""
        return getattr(self.real, name)

    def sendmsg(self, words: list[bytes], ancillary: list[Any], *rest: int) -> int:
        """Note the terms and the plan of a request; a message with fewer descriptors is none."""
        descriptors = ancillary[0][2]
        if len(descriptors) >= 5:
            self.terms = json.loads(b"".join(words))
            self.plan = json.loads(os.pread(descriptors[1], 1 << 22, 0))
        return self.real.sendmsg(words, ancillary, *rest)


def descriptors_of(pid: int) -> int:
    """Count the open descriptors of a process."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def settled(pid: int) -> int:
    """Count the open descriptors of a launcher that has come to rest: it makes its spare after a run was told."""
    last = -1
    for _ in range(100):
        now = descriptors_of(pid)
        if now == last:
            return now
        last = now
        time.sleep(0.1)
    raise AssertionError(f"the launcher never comes to rest, it has {last} descriptors")


class Wire:
    """A connection to a runner's launcher that says what no owner would.

    `terms` and `plan` are those of a real run, with a plain program instead of its script.
    """

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        runner.launcher.start()
        self.pid = launcher_pid(runner)
        pair = runner.launcher._pair
        self.socket: socket.socket = pair.socket
        recorder = _Recorder(self.socket)
        runner.launcher._pair = replace(pair, socket=recorder)
        original = skillrun.launch.scratches.remove_scratch
        skillrun.launch.scratches.remove_scratch = lambda _: (
            True
        )  # its plan names that folder; `close` removes it
        try:
            runner.run("demo", "go.py")
        finally:
            skillrun.launch.scratches.remove_scratch = original
            runner.launcher._pair = pair
        self.terms = {**recorder.terms, "timeout": 5, "grace": 0.1}
        self.plan = {**recorder.plan, "argv": ["/bin/true"], "env": {}, "identity": []}

    def with_terms(self, **changed: Any) -> bytes:
        """Give the terms with some of them changed."""
        return json.dumps({**self.terms, **changed}).encode()

    def with_plan(self, **changed: Any) -> bytes:
        """Give the plan with some of it changed, at level 2 in the frame what is there."""
        frame = self.plan.get("frame", {})
        framed = {name: value for name, value in changed.items() if name in frame}
        plan = {**self.plan, **changed}
        if framed:
            plan["frame"] = {**frame, **framed}
        return json.dumps(plan).encode()

    def request(
        self,
        terms: bytes | None = None,
        plan: bytes | None = None,
        *,
        pipes: int | None = None,
        control: bool = True,
    ) -> list[dict[str, Any]]:
        """Send a request and return the answers until its control socket ends, 8 seconds at most."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        usual = 4 if self.terms["mode"] == "init" else 3
        null = [os.open("/dev/null", os.O_RDWR) for _ in range(usual if pipes is None else pipes)]
        held = [memory(self.with_plan() if plan is None else plan), *null]
        if control:
            held.insert(0, os.dup(theirs.fileno()))
        theirs.close()
        try:
            socket.send_fds(self.socket, [self.with_terms() if terms is None else terms], held)
        finally:
            for descriptor in held:
                os.close(descriptor)
        with ours:
            return list(self._answers(ours))

    @staticmethod
    def _answers(ours: socket.socket) -> Iterable[dict[str, Any]]:
        """Read messages until the end."""
        last = time.monotonic() + 8
        while True:
            ready, _, _ = select.select([ours], [], [], max(0, last - time.monotonic()))
            assert ready, "no answer and no end: the request is stuck"
            try:
                words = ours.recv(1 << 16)
            except ConnectionResetError:
                continue  # said once, of a word of ours that nobody read; what was answered lies behind it
            if not words:
                return
            answer = json.loads(words)
            if answer["event"] == "leader":
                continue  # told of every group before it gets its plan
            yield answer
            if answer["event"] != "started":
                return

    def assert_alive(self) -> None:
        """Check that the same launcher serves a real run."""
        # A launcher that is about to end is no living one; and what it holds for the next run depends on how the runs come.
        time.sleep(0.03)
        assert Path(f"/proc/{self.pid}").exists(), "the launcher is dead"
        result = self.runner.run("demo", "go.py", timeout=10)
        assert (result.error, result.stdout.text) == (None, "fine\n")
        assert launcher_pid(self.runner) == self.pid, "it was replaced"


def _try_each(arena: Arena, mode: str, cases: Iterable[Any], check: Callable[[Wire, Any], None]) -> None:
    """Check every case against one launcher, or a new one where a case spoiled it; name all faults."""
    arena.script(FINE)
    faults = Faults()
    runner = arena.runner(MODES_OF[mode])
    wire = Wire(runner)
    for case in cases:
        before = len(faults.found)
        with faults.of(case):
            check(wire, case)
            wire.assert_alive()
            assert eventually(lambda pid=wire.pid: len(children(pid)) <= 2, 0.5), (
                "something of the run is left"
            )
        if len(faults.found) > before:
            runner.close()
            runner = arena.runner(MODES_OF[mode])
            wire = Wire(runner)
    runner.close()
    faults.assert_none()
    arena.assert_clean()


TERMS: tuple[Any, ...] = (
    b"x",
    b"\xff\xfe",
    b"null",
    b"[]",
    b"{}",
    b'"mode"',
    b"7",
    b"[" * 100_000,
    b'{"mode":' * 20_000,
    b" " * 150_000,
    {"timeout": "soon"},
    {"timeout": None},
    {"timeout": float("nan")},
    {"timeout": float("inf")},
    {"timeout": float("-inf")},
    {"grace": float("nan")},
    {"timeout": 1e300},
    {"timeout": 10_000_000},
    {"timeout": -1, "grace": -1},
    {"timeout": 10**400},
    {"mode": "other"},
    {"mode": None},
    {"mode": ["group"]},
    {"base": 999},
    {"base": "x"},
    {"base": None},
    {"base": 10**400},
    {"base": {}},
)


@pytest.mark.parametrize("mode", MODES_OF)
def test_terms_that_make_no_sense(arena: Arena, mode: str) -> None:
    """Not JSON, wrong types, numbers beyond every clock, too deep, too long: an answer or an end, and it lives on."""

    def check(wire: Wire, terms: Any) -> None:
        wire.request(terms if isinstance(terms, bytes) else wire.with_terms(**terms))

    _try_each(arena, mode, TERMS, check)


@pytest.mark.parametrize("mode", MODES_OF)
@pytest.mark.parametrize("word", ["", "other", None, 7, ["group"], {}], ids=repr)
def test_a_way_to_end_that_there_is_none(arena: Arena, mode: str, word: Any) -> None:
    """A run that lasts is looked at by its mode: one that is none is refused at once, and ends nobody else's."""
    arena.script(FINE)
    with arena.runner(MODES_OF[mode]) as runner:
        wire = Wire(runner)
        long = wire.with_plan(argv=["/bin/sleep", "0.4"])
        answers = wire.request(wire.with_terms(mode=word), long)
        assert [answer["event"] for answer in answers] == ["failed"]
        wire.assert_alive()
    arena.assert_clean()


PLANS: tuple[Any, ...] = (
    b"",
    b"x",
    b"\xff",
    b"[]",
    b"null",
    b"{}",
    b"[" * 100_000,
    {"argv": []},
    {"argv": [7]},
    {"argv": ["a\0b"]},
    {"argv": ["/nothing/here"]},
    {"argv": ["/etc/hostname"]},
    {"argv": "x"},
    {"env": []},
    {"env": {"a=b": "c"}},
    {"env": {"a": "\ud800"}},
    {"cwd": ["/nothing", 1, 1]},
    {"cwd": ["/", 1, 1]},
    {"cwd": 5},
    {"rlimits": [[999, 1]]},
    {"rlimits": [["x"]]},
    {"identity": [["/bin/true", 1, 1, None]]},
    {"identity": [["/bin/true", 1]]},
)
FRAMES: tuple[Any, ...] = (
    {"frame": None},
    {"frame": []},
    {"frame": {}},
    {"scratch": 7},
    {"scratch": []},
    {"scratch": ["/nothing", 1, 1]},
    {"entries": 7},
    {"entries": [["/nothing", "ro", 1, 1]]},
    {"entries": [["/etc", "ro", 1, 1]]},
    {"entries": [["/etc"]]},
    {"rules": 7},
    {"rules": [["/nothing", 1, 1, 1]]},
    {"links": [7]},
    {"tmpfs": "much"},
    {"home": None, "user": None},
)


@pytest.mark.parametrize("mode", MODES_OF)
def test_plans_that_make_no_sense(arena: Arena, mode: str) -> None:
    """Each is answered with `failed` and a stage; nothing is executed, and the next run works."""

    def check(wire: Wire, plan: Any) -> None:
        answers = wire.request(plan=plan if isinstance(plan, bytes) else wire.with_plan(**plan))
        assert answers, "no answer"
        assert answers[-1]["event"] == "failed", answers
        assert answers[-1]["stage"]

    _try_each(arena, mode, PLANS + (FRAMES if mode == "init" else ()), check)


@pytest.mark.parametrize(
    "rules", [7, [7], [["/nothing", 1, 1, 1]], [["/", -1, 1, 1]], [["/", 1 << 40, 1, 1]], [["x"]]]
)
def test_rules_that_make_no_sense(arena: Arena, rules: Any) -> None:
    """A rule that can't be laid down stops the start."""
    arena.script(FINE)
    with arena.runner("level-1") as runner:
        wire = Wire(runner)
        if "rules" not in wire.plan:
            pytest.skip("this plan has its rules elsewhere")
        answers = wire.request(plan=wire.with_plan(rules=rules))
        assert answers[-1]["event"] == "failed"
        wire.assert_alive()
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES_OF)
def test_the_plan_of_these_tests_is_a_good_one(arena: Arena, mode: str) -> None:
    """A control: unspoiled it runs to its end."""
    arena.script(FINE)
    with arena.runner(MODES_OF[mode]) as runner:
        wire = Wire(runner)
        answers = wire.request()
        assert (answers[-1]["event"], answers[-1].get("status")) == ("ended", 0), answers
    arena.assert_clean()


@pytest.mark.parametrize("pipes", range(7))
def test_too_few_or_too_many_descriptors(arena: Arena, pipes: int) -> None:
    """A request with fewer descriptors than a run has, or more than it may: no hang, none kept, it lives on."""
    arena.script(FINE)
    with arena.runner("level-1") as runner:
        wire = Wire(runner)
        wire.assert_alive()
        before = settled(wire.pid)
        wire.request(pipes=pipes)
        wire.assert_alive()
        assert eventually(lambda: descriptors_of(wire.pid) == before)
    arena.assert_clean()


def test_an_init_gets_all_its_pipes_or_none(arena: Arena) -> None:
    """With one too few each would be taken for another: a script whose output goes nowhere, or into the words to the owner."""
    arena.script(FINE)
    with arena.runner("level-2") as runner:
        wire = Wire(runner)
        answers = wire.request(pipes=3)
        assert (answers[-1]["event"], answers[-1]["stage"]) == ("failed", "request")
        wire.assert_alive()
    arena.assert_clean()


def test_a_request_without_any_descriptor(arena: Arena) -> None:
    """Words alone are nothing."""
    arena.script(FINE)
    with arena.runner("level-1") as runner:
        wire = Wire(runner)
        for words in (b"x", b"{}", wire.with_terms()):
            wire.socket.send(words)
        wire.assert_alive()
    arena.assert_clean()


def test_a_control_socket_that_is_none(arena: Arena) -> None:
    """The first descriptor is a file: there is nobody to answer, and it lives on."""
    arena.script(FINE)
    with arena.runner("level-1") as runner:
        wire = Wire(runner)
        before = settled(wire.pid)
        wire.request(control=False, pipes=5)
        wire.assert_alive()
        assert eventually(lambda: descriptors_of(wire.pid) == before)
    arena.assert_clean()


def test_a_spoiled_rule_base_does_not_spoil_the_next_run(arena: Arena) -> None:
    """What later runs share comes with one descriptor; when it is wrong, runs with a good one still work."""
    bases = (b"x", b"", b"[]", b"{}", b'{"masks": "x"}', b"[" * 50_000)
    numbers = (b'{"base": 77}', b'{"base": []}', b"[" * 5000, b"x", b'{"base": 1e999}')
    cases = [(base, number) for base in bases for number in numbers]

    def check(wire: Wire, case: Any) -> None:
        words, number = case
        descriptor = memory(words)
        socket.send_fds(wire.socket, [number], [descriptor])
        os.close(descriptor)
        wire.request(wire.with_terms(base=77))

    _try_each(arena, "group", cases, check)


def test_words_on_a_control_socket_only_cancel(arena: Arena) -> None:
    """Whatever an owner says about a run means cancel; it ends once, and answers once."""
    arena.script(FINE)
    with arena.runner("level-1") as runner:
        wire = Wire(runner)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        held = [
            theirs.fileno(),
            memory(wire.with_plan(argv=["/bin/sleep", "30"])),
            *(os.open("/dev/null", os.O_RDWR) for _ in range(3)),
        ]
        socket.send_fds(wire.socket, [wire.with_terms(timeout=60)], held)
        for descriptor in held[1:]:
            os.close(descriptor)
        theirs.close()
        with ours:
            time.sleep(0.2)
            for words in (b"\0", b"cancel", b"x" * 5000, b"{}"):
                with contextlib.suppress(OSError):
                    ours.send(words)
            answers = list(wire._answers(ours))
            said = [answer for answer in answers if answer["event"] != "started"]
            assert [answer["event"] for answer in said] == ["ended"]
            assert said[0]["reason"] == "cancelled"
        wire.assert_alive()
    arena.assert_clean()


_KEYS = ("argv", "env", "cwd", "rlimits", "identity", "rules", "mode", "timeout", "grace", "base", "x")


def _value(random_: random.Random, depth: int = 0) -> Any:
    """Make a JSON value."""
    kind = random_.randrange(10 if depth < 3 else 7)
    if kind == 0:
        return random_.choice([None, True, False])
    if kind == 1:
        return random_.choice(
            [0, -1, 1, 3, 1 << 31, 1 << 63, 1 << 70, -(1 << 40), 1e308, float("nan"), float("inf")]
        )
    if kind == 2:
        return random_.choice(
            ["group", "tree", "", "/", "/bin/true", "/dev/null", "\0", "x" * 3000, "é中😀", "\ud800"]
        )
    if kind < 7:
        return random_.choice([[], {}, "0", 0.01, ["/bin/true"], [["/", 1, 1]], {"a": "b"}])
    if kind == 7:
        return {random_.choice(_KEYS): _value(random_, depth + 1) for _ in range(random_.randrange(4))}
    return [_value(random_, depth + 1) for _ in range(random_.randrange(4))]


def _spoil(random_: random.Random, good: dict[str, Any]) -> bytes:
    """Spoil a good object: a value, a key, or its bytes."""
    spoiled = dict(good)
    for _ in range(random_.randrange(1, 3)):
        key = random_.choice(list(good))
        if random_.random() < 0.2:
            spoiled.pop(key, None)
        else:
            spoiled[key] = _value(random_)
    words = bytearray(json.dumps(spoiled).encode())
    if random_.random() < 0.3 and words:
        for _ in range(random_.randrange(1, 4)):
            words[random_.randrange(len(words))] = random_.randrange(256)
    if random_.random() < 0.1:
        del words[random_.randrange(len(words) + 1) :]
    return bytes(words) or b" "  # nothing at all is how a socket ends


@pytest.mark.parametrize("mode", MODES_OF)
def test_random_requests_fuzz(arena: Arena, mode: str) -> None:
    """Random terms, plans and descriptors: each comes to an end, one launcher serves them all, nothing stays.

    SKILLRUN_FUZZ_LAUNCH=N, else SKILLRUN_FUZZ=N, makes N requests, SKILLRUN_SEED repeats a failure.
    """
    count = int(os.environ.get("SKILLRUN_FUZZ_LAUNCH") or os.environ.get("SKILLRUN_FUZZ", "120"))
    seed = int(os.environ.get("SKILLRUN_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    random_ = random.Random(seed)
    arena.script(FINE)
    with arena.runner(MODES_OF[mode]) as runner:
        wire = Wire(runner)
        wire.assert_alive()
        wire.terms["timeout"] = 0.3
        before = settled(wire.pid)
        held = Holdings.now()
        for turn in range(count):
            terms = _spoil(random_, wire.terms) if random_.random() < 0.5 else wire.with_terms()
            plan = _spoil(random_, wire.plan) if random_.random() < 0.7 else wire.with_plan()
            pipes = None if random_.random() < 0.8 else random_.randrange(8)
            said = f"seed {seed}, turn {turn}: terms {terms[:300]!r} plan {plan[:300]!r} pipes {pipes}"
            try:
                answers = wire.request(terms, plan, pipes=pipes)
            except (OSError, AssertionError) as problem:
                pytest.fail(f"{said}: {problem!r}")
            assert Path(f"/proc/{wire.pid}").exists(), f"the launcher died: {said}"
            assert not answers or answers[-1]["event"] in {"ended", "failed"}, f"{answers}: {said}"
        wire.assert_alive()
        assert eventually(lambda: descriptors_of(wire.pid) == before), f"seed {seed}"
        assert eventually(lambda: len(children(wire.pid)) <= 2), f"seed {seed}: {children(wire.pid)}"
        assert not held.leaked(), f"seed {seed}"
    arena.assert_clean()
