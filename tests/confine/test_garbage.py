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
from typing import TYPE_CHECKING, Any

import pytest
from arena import MODES, Holdings, children, eventually, launcher_pid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from arena import Arena

FINE = "print('fine')\n"
TERMS = {"mode": "group", "timeout": 5, "grace": 0.1, "landlock": None}
PLAN = {
    "argv": ["/bin/true"],
    "env": {},
    "cwd": ["/", os.stat("/").st_dev, os.stat("/").st_ino],
    "rlimits": [],
    "identity": [],
    "confinement": None,
}


def memory(words: bytes) -> int:
    """Put words into a memory file, as a plan comes."""
    descriptor = os.memfd_create("plan")
    os.write(descriptor, words)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


class Wire:
    """A connection to a runner's launcher that says what no owner would."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        runner.launcher.start()
        self.pid = launcher_pid(runner)
        self.socket: socket.socket = runner.launcher._socket

    def request(
        self, terms: bytes, plan: bytes = b"", *, pipes: int = 3, extra: Sequence[int] = (), control: bool = True
    ) -> list[dict[str, Any]]:
        """Send a request and return the answers until its control socket ends or half a minute is over."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        null = [os.open("/dev/null", os.O_RDWR) for _ in range(pipes)]
        held = [memory(plan), *null]
        if control:
            held.insert(0, os.dup(theirs.fileno()))
        theirs.close()
        try:
            socket.send_fds(self.socket, [terms], [*held, *extra])
        finally:
            for descriptor in held:
                os.close(descriptor)
        with ours:
            return list(self._answers(ours))

    @staticmethod
    def _answers(ours: socket.socket) -> Iterable[dict[str, Any]]:
        """Read messages until the end."""
        last = time.monotonic() + 30
        while True:
            ready, _, _ = select.select([ours], [], [], max(0, last - time.monotonic()))
            assert ready, "no answer and no end: the request is stuck"
            try:
                words = ours.recv(1 << 16)
            except ConnectionResetError:
                return
            if not words:
                return
            yield json.loads(words)
            if json.loads(words)["event"] != "started":
                return

    def assert_alive(self) -> None:
        """The same launcher serves a real run."""
        assert os.path.exists(f"/proc/{self.pid}"), "the launcher is dead"
        result = self.runner.run("demo", "go.py", timeout=10)
        assert (result.error, result.stdout.text) == (None, "fine\n")
        assert launcher_pid(self.runner) == self.pid, "it was replaced"


@pytest.mark.parametrize(
    "terms",
    [
        b"x",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{}",
        b'"mode"',
        b"7",
        b'{"mode": "group"}',
        b'{"mode": "group", "timeout": "soon", "grace": 1}',
        b'{"mode": "group", "timeout": null, "grace": 1}',
        b'{"mode": "group", "timeout": NaN, "grace": 1}',
        b'{"mode": "group", "timeout": Infinity, "grace": 1}',
        b'{"mode": "group", "timeout": 1, "grace": NaN}',
        b'{"mode": "group", "timeout": 1e300, "grace": 1}',
        b'{"mode": "group", "timeout": 10000000, "grace": 1}',
        b'{"mode": "group", "timeout": -1, "grace": -1}',
        b'{"mode": "group", "timeout": 1' + b"0" * 400 + b', "grace": 1}',
        b'{"mode": "other", "timeout": 1, "grace": 1}',
        b'{"mode": null, "timeout": 1, "grace": 1}',
        b'{"mode": ["group"], "timeout": 1, "grace": 1}',
        b"[" * 100_000,
        b'{"mode":' * 20_000,
        b" " * 150_000,
    ],
    ids=lambda terms: repr(terms[:45]),
)
def test_terms_that_make_no_sense(arena: Arena, terms: bytes) -> None:
    """Not JSON, wrong types, numbers beyond every clock, too deep, too long: an answer or an end, and it lives on."""
    arena.script(FINE)
    with arena.runner() as runner:
        wire = Wire(runner)
        wire.request(terms, json.dumps(PLAN).encode())
        wire.assert_alive()
    arena.assert_clean()


@pytest.mark.parametrize("mode", ["group", "tree"])
@pytest.mark.parametrize(
    "plan",
    [
        b"",
        b"x",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        json.dumps({**PLAN, "argv": []}).encode(),
        json.dumps({**PLAN, "argv": [7]}).encode(),
        json.dumps({**PLAN, "argv": ["a\0b"]}).encode(),
        json.dumps({**PLAN, "argv": ["/nothing/here"]}).encode(),
        json.dumps({**PLAN, "argv": ["/etc/hostname"]}).encode(),
        json.dumps({**PLAN, "argv": "x"}).encode(),
        json.dumps({**PLAN, "env": []}).encode(),
        json.dumps({**PLAN, "env": {"a=b": "c"}}).encode(),
        json.dumps({**PLAN, "env": {"a": "\ud800"}}).encode(),
        json.dumps({**PLAN, "cwd": ["/nothing", 1, 1]}).encode(),
        json.dumps({**PLAN, "cwd": ["/", 1, 1]}).encode(),
        json.dumps({**PLAN, "cwd": 5}).encode(),
        json.dumps({**PLAN, "rlimits": [[999, 1]]}).encode(),
        json.dumps({**PLAN, "rlimits": [["x"]]}).encode(),
        json.dumps({**PLAN, "identity": [["/bin/true", 1, 1, None]]}).encode(),
        json.dumps({**PLAN, "identity": [["/bin/true", 1]]}).encode(),
        json.dumps({**PLAN, "confinement": 7}).encode(),
        json.dumps({**PLAN, "confinement": {"landlock": {}, "filter": ""}}).encode(),
        json.dumps(
            {**PLAN, "confinement": {"landlock": {"masks": [1, 0, 0], "system": [], "rules": []}, "filter": "zz"}}
        ).encode(),
        json.dumps(
            {**PLAN, "confinement": {"landlock": {"masks": [1, 0, 0], "system": [], "rules": []}, "filter": "00" * 8}}
        ).encode(),
    ],
    ids=lambda plan: repr(plan[:60]) if isinstance(plan, bytes) else plan,
)
def test_plans_that_make_no_sense(arena: Arena, plan: bytes, mode: str) -> None:
    """Each is answered with `failed` and a stage; nothing is executed, and the next run works."""
    arena.script(FINE)
    with arena.runner() as runner:
        wire = Wire(runner)
        terms = json.dumps({**TERMS, "mode": mode}).encode()
        answers = wire.request(terms, plan)
        assert answers
        assert answers[-1]["event"] == "failed", answers
        assert answers[-1]["stage"]
        wire.assert_alive()
    arena.assert_clean()


def test_the_plan_of_these_tests_is_a_good_one(arena: Arena) -> None:
    """A control: unspoiled it runs to its end in both modes."""
    arena.script(FINE)
    with arena.runner() as runner:
        wire = Wire(runner)
        for mode in ("group", "tree"):
            answers = wire.request(json.dumps({**TERMS, "mode": mode}).encode(), json.dumps(PLAN).encode())
            assert (answers[-1]["event"], answers[-1]["status"]) == ("ended", 0)
    arena.assert_clean()


@pytest.mark.parametrize("pipes", range(7))
def test_too_few_or_too_many_descriptors(arena: Arena, pipes: int) -> None:
    """A request with fewer descriptors than a run has, or more than it may: no hang, none kept, it lives on."""
    arena.script(FINE)
    with arena.runner() as runner:
        wire = Wire(runner)
        wire.assert_alive()
        before = len(os.listdir(f"/proc/{wire.pid}/fd"))
        wire.request(json.dumps(TERMS).encode(), json.dumps(PLAN).encode(), pipes=pipes)
        wire.assert_alive()
        assert eventually(lambda: len(os.listdir(f"/proc/{wire.pid}/fd")) == before)
    arena.assert_clean()


def test_a_request_without_any_descriptor(arena: Arena) -> None:
    """Words alone are nothing."""
    arena.script(FINE)
    with arena.runner() as runner:
        wire = Wire(runner)
        for words in (b"x", b"{}", json.dumps(TERMS).encode()):
            wire.socket.send(words)
        wire.assert_alive()
    arena.assert_clean()


def test_a_control_socket_that_is_none(arena: Arena) -> None:
    """The first descriptor is a file: there is nobody to answer, and it lives on."""
    arena.script(FINE)
    with arena.runner() as runner:
        wire = Wire(runner)
        before = len(os.listdir(f"/proc/{wire.pid}/fd"))
        wire.request(json.dumps(TERMS).encode(), json.dumps(PLAN).encode(), control=False, pipes=5)
        wire.assert_alive()
        assert eventually(lambda: len(os.listdir(f"/proc/{wire.pid}/fd")) == before)
    arena.assert_clean()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("base", [7, "x", [], {"masks": [1, 2], "system": []}, {"masks": ["a"], "system": 3}])
def test_a_spoiled_rule_base_does_not_spoil_the_next_run(arena: Arena, mode: str, base: Any) -> None:
    """The base of one run is tried for the spare of the next; when it is wrong, the next run still works."""
    arena.script(FINE)
    with arena.runner(mode) as runner:
        wire = Wire(runner)
        terms = {**TERMS, "mode": "group", "landlock": base}
        wire.request(json.dumps(terms).encode(), json.dumps(PLAN).encode())
        wire.assert_alive()
        wire.assert_alive()
    arena.assert_clean()


def test_words_on_a_control_socket_only_cancel(arena: Arena) -> None:
    """Whatever an owner says about a run means cancel; it ends once, and answers once."""
    arena.script(FINE)
    with arena.runner() as runner:
        wire = Wire(runner)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        plan = {**PLAN, "argv": ["/bin/sleep", "30"]}
        held = [theirs.fileno(), memory(json.dumps(plan).encode()), *(os.open("/dev/null", os.O_RDWR) for _ in range(3))]
        socket.send_fds(wire.socket, [json.dumps({**TERMS, "timeout": 60}).encode()], held)
        for descriptor in held[1:]:
            os.close(descriptor)
        theirs.close()
        with ours:
            assert json.loads(ours.recv(1000))["event"] == "started"
            for words in (b"\0", b"cancel", b"x" * 5000, b"{}"):
                with contextlib.suppress(OSError):
                    ours.send(words)
            answers = list(wire._answers(ours))
            assert [answer["event"] for answer in answers] == ["ended"]
            assert answers[0]["reason"] == "cancelled"
        wire.assert_alive()
    arena.assert_clean()


def _value(random_: random.Random, depth: int = 0) -> Any:
    """Make a JSON value."""
    kind = random_.randrange(10 if depth < 3 else 7)
    if kind == 0:
        return random_.choice([None, True, False])
    if kind == 1:
        return random_.choice([0, -1, 1, 3, 1 << 31, 1 << 63, 1 << 70, -(1 << 40), 1e308, float("nan"), float("inf")])
    if kind == 2:
        return random_.choice(["group", "tree", "", "/", "/bin/true", "/dev/null", "\0", "x" * 3000, "é中😀", "\ud800"])
    if kind < 7:
        return random_.choice([[], {}, "0", 0.01, ["/bin/true"], [["/", 1, 1]], {"a": "b"}])
    if kind == 7:
        return {random_.choice([*PLAN, *TERMS, "x"]): _value(random_, depth + 1) for _ in range(random_.randrange(4))}
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
    return bytes(words)


def test_random_requests_fuzz(arena: Arena) -> None:
    """Random terms, plans and descriptors: each comes to an end, one launcher serves them all, nothing stays.

    SKILLRUN_FUZZ=N makes N requests, SKILLRUN_SEED repeats a failure.
    """
    count = int(os.environ.get("SKILLRUN_FUZZ", "300"))
    seed = int(os.environ.get("SKILLRUN_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    random_ = random.Random(seed)
    arena.script(FINE)
    with arena.runner() as runner:
        wire = Wire(runner)
        wire.assert_alive()
        before = len(os.listdir(f"/proc/{wire.pid}/fd"))
        held = Holdings.now()
        for turn in range(count):
            terms = json.dumps({**TERMS, "mode": random_.choice(["group", "tree"]), "timeout": 0.3}).encode()
            if random_.random() < 0.5:
                terms = _spoil(random_, {**TERMS, "timeout": 0.3})
            plan = _spoil(random_, PLAN) if random_.random() < 0.7 else json.dumps(PLAN).encode()
            pipes = 3 if random_.random() < 0.8 else random_.randrange(8)
            said = f"seed {seed}, turn {turn}: terms {terms[:300]!r} plan {plan[:300]!r} pipes {pipes}"
            try:
                # The socket itself must be a control socket: a launcher's own faults are tested above.
                answers = wire.request(terms, plan, pipes=pipes)
            except (OSError, AssertionError) as problem:
                pytest.fail(f"{said}: {problem!r}")
            assert os.path.exists(f"/proc/{wire.pid}"), f"the launcher died: {said}"
            assert not answers or answers[-1]["event"] in {"ended", "failed"}, said
        wire.assert_alive()
        assert eventually(lambda: len(os.listdir(f"/proc/{wire.pid}/fd")) == before), f"seed {seed}"
        assert eventually(lambda: len(children(wire.pid)) <= 1), f"seed {seed}: {children(wire.pid)}"
        assert not held.leaked(), f"seed {seed}"
    arena.assert_clean()
