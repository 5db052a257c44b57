"""What the launcher says is believed only when it makes sense: `make fuzz` tries 200,000 messages."""

from __future__ import annotations

import json
import os
import random
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from arena import MODES, launcher_pid

from skillrun import Call, Termination
from skillrun.launch.capture import Captured
from skillrun.launch.drive import Outcome
from skillrun.launch.pump import Pump, make_room
from skillrun.launch.verdict import judge
from skillrun.launch.words import understood

if TYPE_CHECKING:
    from arena import Arena

    from skillrun.sandbox.policy import Policy

ENDED = {"event": "ended", "reason": None, "leftovers": 0, "status": 0, "cpu": 0.1, "rss": 9000, "proc": True}
GOOD = (
    {"event": "started", "pid": 7},
    {"event": "failed", "stage": "landlock", "errno": 13, "message": "no", "changed": True},
    {"event": "leader", "pid": 7},
    {"event": "failed", "stage": "start", "errno": None, "message": "killed"},
    ENDED,
    {**ENDED, "event": "over"},
    {**ENDED, "reason": "timed_out", "status": 9},
    {**ENDED, "reason": "memory_limit", "memory": 1 << 40, "status": 9},
    {**ENDED, "reason": "process_limit", "processes": 600},
)


@pytest.mark.parametrize("message", GOOD)
def test_good_words_are_understood(message: dict[str, Any]) -> None:
    """Every message that the launcher sends is taken as it is."""
    assert understood(json.dumps(message).encode()) == message


@pytest.mark.parametrize(
    "words",
    [
        b"", b"{", b"[]", b"null", b"7", b'"ended"', b"[" * 60_000, b'{"event": "hello"}', b'{"event": []}', b"\xff\xfe",
        *(json.dumps({**ENDED, **bad}).encode() for bad in (
            {"status": None}, {"status": -1}, {"status": 1 << 20}, {"status": True}, {"status": "0"},
            {"reason": "bored"}, {"reason": ["timed_out"]}, {"cpu": None}, {"cpu": -1}, {"cpu": float("inf")},
            {"rss": None}, {"rss": 1.5}, {"leftovers": -1}, {"reason": "memory_limit"}, {"reason": "process_limit", "processes": "9"},
        )),
        *(json.dumps({**GOOD[1], **bad}).encode() for bad in ({"stage": 3}, {"errno": "13"}, {"message": None})),
        *(json.dumps({**GOOD[0], **bad}).encode() for bad in ({"pid": 0}, {"pid": "7"}, {"pid": None}, {"pid": 1 << 70})),
        *(json.dumps({**GOOD[2], **bad}).encode() for bad in (  # killpg(0) would be our own group, and 1 nobody's
            {"pid": 0}, {"pid": 1}, {"pid": -7}, {"pid": "7"}, {"pid": None}, {"pid": True}, {"pid": 1 << 22 | 1},
        )),
    ],
    ids=lambda words: repr(words[:80]),
)  # fmt: skip
def test_other_words_are_none(words: bytes) -> None:
    """A wrong kind, a number out of range, a missing part: nothing of it is taken."""
    assert understood(words) is None


def listening(ours: socket.socket, feeding: int) -> Pump:
    """Give a pump that hears what comes by a control socket, and has nothing else to do."""
    pump = Pump(
        room=make_room(),
        feeding=feeding,
        stdin=b"",
        source=None,
        words=None,
        streams={},
        on_start=None,
    )
    pump.attach(ours)
    return pump


def test_the_last_word_is_heard_over_a_cancel_that_nobody_read() -> None:
    """A launcher that ends a run while a cancel is on its way leaves a reset before its last word: the word counts."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reading, feeding = os.pipe()
    with ours:
        pump = listening(ours, feeding)
        ours.send(b"cancel")
        for pid in (5, 7):  # the first one was dead, and its number may be a stranger's by now
            theirs.send(json.dumps({"event": "leader", "pid": pid}).encode())
        theirs.send(json.dumps(ENDED).encode())
        theirs.close()
        assert pump.work(time.monotonic() + 5) == ENDED
        assert pump.leader == 7
        pump.close()
    os.close(reading)


def test_the_end_without_a_word_is_an_end() -> None:
    """A launcher that died says nothing, with or without an unread cancel."""
    for said in (b"", b"cancel"):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        reading, feeding = os.pipe()
        with ours:
            pump = listening(ours, feeding)
            if said:
                ours.send(said)
            theirs.close()
            assert pump.work(time.monotonic() + 5) is None
            assert not pump.stuck
            pump.close()
        os.close(reading)


class _Policy:
    """What a verdict looks at."""

    class limits:  # noqa: N801 - as a policy spells it
        """Limits."""

        memory, processes = 1 << 30, 64

    argv = ("/bin/sh",)
    environ = (("PATH", "/bin"),)
    script, interpreter = "go.sh", None


def _spoiled(dice: random.Random) -> bytes:
    """Spoil a good message: values, keys, bytes."""
    message: dict[str, Any] = dict(dice.choice(GOOD))
    values = [None, True, -1, 0, 1, 1 << 70, 0.5, float("nan"), "", "timed_out", "x" * 300, [], {}, [[]]]
    for _ in range(dice.randrange(3)):
        key = dice.choice([*message, *ENDED, "errno", "memory", "\ud800"])
        if dice.random() < 0.3:
            message.pop(key, None)
        else:
            message[key] = dice.choice(values)
    words = bytearray(json.dumps(message).encode())
    for _ in range(dice.randrange(3) if dice.random() < 0.3 else 0):
        words[dice.randrange(len(words))] = dice.randrange(256)
    return bytes(words[: dice.randrange(len(words) + 1)] if dice.random() < 0.1 else words)


def test_random_words_fuzz() -> None:
    """Whatever comes, it is none or one from which a verdict can be made; nothing is raised."""
    count = int(os.environ.get("SKILLRUN_FUZZ_LAUNCH") or os.environ.get("SKILLRUN_FUZZ", "3000"))
    seed = int(os.environ.get("SKILLRUN_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
    dice = random.Random(seed)
    nothing = Captured("", 0, truncated=False)
    policy: Policy = _Policy()  # type: ignore[assignment]
    taken = 0
    for turn in range(count):
        words = _spoiled(dice)
        try:
            message = understood(words)
            if message is None or message["event"] in {"started", "leader"}:
                continue
            verdict = judge(Outcome(message, nothing, nothing, 0.1), policy)
        except Exception as problem:  # noqa: BLE001 - told with how to repeat it
            pytest.fail(f"SKILLRUN_SEED={seed} turn {turn}: {words!r}: {problem!r}")
        assert (verdict.exit_code is None) or (verdict.signal is None), f"SKILLRUN_SEED={seed}: {words!r}"
        taken += 1
    assert taken > count // 20, "most of what was tried was no message at all"


@pytest.mark.parametrize("mode", MODES)
def test_a_launcher_that_talks_nonsense_is_given_up(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Its run ends with the named error and nothing alive, and the next run has another launcher."""
    arena.script("print('ready', flush=True)\nimport time; time.sleep(30)")
    arena.script("#!/bin/sh\necho fine\n", skill="next", name="go.sh")
    with arena.runner(mode) as runner:
        runner.launcher.probe()
        before = launcher_pid(runner)
        spoil = threading.Event()
        monkeypatch.setattr(
            "skillrun.launch.pump.understood", lambda words: None if spoil.is_set() else understood(words)
        )
        run = runner.start(Call("demo", timeout=0.5))
        spoil.set()
        result = run.wait(20)
        spoil.clear()
        assert result.termination is Termination.CANCELLED
        assert result.error is not None
        assert result.error.rule == "launcher-died"
        arena.assert_dead()
        assert runner.run("next").ok
        assert launcher_pid(runner) != before
    arena.assert_clean()
