"""Many calls at once and hostile messages: nothing is lost, mixed or doubled, and nothing of it is left.

`make test` tries a few; with SKILLRUN_FUZZ set it is 1,000 calls on each transport and that many fuzzed messages.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import psutil
import pytest
from mcp_world import WAIT
from test_http import connected, serve
from test_service import in_loop
from test_stdio import check_wire

if TYPE_CHECKING:
    from mcp_world import Session, World

LONG = os.environ.get("SKILLRUN_FUZZ", "")
CALLS = 1_000 if LONG else 48
AT_ONCE = 32
MESSAGES = int(LONG) if LONG else 500
ECHO = '#!/bin/sh\n[ "$1" = slow ] && exec sleep 600\necho "said $1"\n'


def resident(session: Session) -> int:
    """Return the memory of the server in bytes."""
    return psutil.Process(session.process.pid).memory_info().rss


def survivors(session: Session) -> list[str]:
    """Name the scripts among what the server has started."""
    found: list[str] = []
    for one in psutil.Process(session.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it may end while it is looked at
            found.append(" ".join(one.cmdline()))
    return [words for words in found if "sleep" in words]


def gone(session: Session) -> None:
    """Wait until no script is left."""
    end = time.monotonic() + WAIT
    while survivors(session) and time.monotonic() < end:
        time.sleep(0.1)
    assert survivors(session) == []


@pytest.mark.timeout(1800)
def test_many_calls_on_one_connection(world: World) -> None:
    """Every call is answered once, with its own words, except those that were cancelled, which are not answered."""
    world.skill("echo", say=ECHO)
    session = world.start()
    session.hello()
    order = random.Random(9)
    cancelled = {number for number in range(CALLS) if number % 8 == 3}
    waiting: set[int] = set()
    early: list[int] = []
    for number in range(CALLS):
        slow = number in cancelled
        session.call(number, "echo__say", {"args": ["slow" if slow else str(number)]})
        if slow:
            early.append(number)
        else:
            waiting.add(number)
        if len(early) >= 4:
            one = early.pop(order.randrange(len(early)))
            session.send(method="notifications/cancelled", params={"requestId": one})
        while len(waiting) + len(early) >= AT_ONCE:
            number_ = next(iter(waiting))
            check(session, number_)
            waiting.discard(number_)
        if number == CALLS // 4:
            before = resident(session)
    for one in early:
        session.send(method="notifications/cancelled", params={"requestId": one})
    for number in waiting:
        check(session, number)
    gone(session)
    assert resident(session) - before < 40 << 20
    assert session.close() == 0
    check_wire(session)
    answers = Counter(json.loads(line).get("id") for line in session.lines)
    assert {number for number in range(CALLS) if answers[number] == 1} == set(range(CALLS)) - cancelled
    assert all(count == 1 for count in answers.values())


def check(session: Session, number: int) -> None:
    """Take one answer and look whether it is the right one."""
    found = session.answer(number)["result"]
    assert found["content"][0]["text"] == f"said {number}", found


@pytest.mark.slow
@pytest.mark.timeout(1800)
@in_loop
async def test_many_calls_on_a_port(world: World) -> None:
    """The same over HTTP: each stream has its own answer; closed streams end their scripts; memory stays flat."""
    world.skill("echo", say=ECHO)
    port = await anyio.to_thread.run_sync(serve, world)
    said: list[tuple[int, str]] = []
    room = anyio.CapacityLimiter(AT_ONCE)
    before: list[int] = []

    async with connected(port, {"Authorization": f"Bearer {port.token}"}) as client:

        async def call(number: int) -> None:
            async with room:
                if number % 8 == 3:
                    with anyio.move_on_after(0.5):
                        await client.call_tool("echo__say", {"args": ["slow"]})
                    return
                done = await client.call_tool("echo__say", {"args": [str(number)]})
                said.append((number, done.content[0].text))
                if len(said) == CALLS // 4:
                    before.append(resident(port.session))

        async with anyio.create_task_group() as group:
            for number in range(CALLS):
                group.start_soon(call, number)
    assert len(said) == sum(number % 8 != 3 for number in range(CALLS))
    assert all(text == f"said {number}" for number, text in said)
    await anyio.to_thread.run_sync(gone, port.session)
    assert resident(port.session) - before[0] < 40 << 20
    port.session.process.terminate()
    assert await anyio.to_thread.run_sync(port.session.process.wait, 30) == 143


@pytest.mark.timeout(3600)
def test_fuzzed_messages(world: World) -> None:
    """Whatever JSON or bytes a client sends, the next request is answered, and each line we write is a message."""
    world.skill("echo", say=ECHO)
    session = world.start()
    session.hello()
    seed = int(os.environ.get("SKILLRUN_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"SKILLRUN_SEED={seed}")
    chance = random.Random(seed)
    for number in range(MESSAGES):
        session.raw(message(chance))
        if number % 250 == 249:
            session.send(id=f"ping-{number}", method="ping")
            assert session.answer(f"ping-{number}")["result"] == {}
    session.send(id="last", method="tools/list")
    assert [tool["name"] for tool in session.answer("last")["result"]["tools"]] == ["echo__say"]
    assert session.process.poll() is None
    assert Path("/proc", str(session.process.pid)).exists()
    assert session.close() == 0
    check_wire(session)
    assert b"Traceback" not in session.errors


METHODS = (
    "tools/list", "tools/call", "resources/list", "resources/read", "skills/list", "skills/get", "initialize",
    "server/discover", "subscriptions/listen", "notifications/cancelled", "notifications/progress",
    "notifications/initialized", "ping", "completion/complete", "", "\x00", "a" * 1000,
)  # fmt: skip
KEYS = (
    "name", "arguments", "cursor", "uri", "_meta", "progressToken", "requestId", "inputResponses", "requestState",
    "protocolVersion", "capabilities", "clientInfo", "notifications", "args", "stdin", "task",
)  # fmt: skip


def message(chance: random.Random) -> bytes:
    """Make one message that is wrong somewhere, as a line."""
    if chance.random() < 0.1:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(200))).replace(b"\n", b"") + b"\n"
    params = {chance.choice(KEYS): value(chance) for _ in range(chance.randrange(4))}
    made: Any = {"jsonrpc": "2.0", "id": value(chance, 3), "method": chance.choice(METHODS), "params": params}
    # An id that nobody else uses: the answers to our own requests must stay ours.
    if isinstance(made["id"], str):
        made["id"] = f"fuzz-{made['id']}"
    for key in list(made):
        if chance.random() < 0.15:
            made[key] = value(chance)
        elif chance.random() < 0.05:
            del made[key]
    text = json.dumps([made] if chance.random() < 0.05 else made).encode()
    if chance.random() < 0.1:
        cut = chance.randrange(len(text))
        text = text[:cut] + bytes([chance.randrange(11, 256)]) + text[cut:]
    return text + b"\n"


def value(chance: random.Random, depth: int = 0) -> Any:
    """Make any JSON value."""
    kind = chance.randrange(12 if depth < 3 else 9)
    simple = (
        None, True, -1, 10**30, 0.5, "", "echo__say", "\ud800\u202e\x00", "skill://echo/SKILL.md",
    )  # fmt: skip
    if kind < len(simple):
        return simple[kind]
    inner = [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return inner if kind == 9 else {chance.choice(KEYS): one for one in inner}
