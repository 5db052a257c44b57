"""A client that breaks the protocol on standard input: each request has one answer, and the server goes on."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import mcp_types as types
import psutil
from mcp_world import alive, until
from test_approval import COUNT, FRONT
from test_stdio import LIVES, OPEN, WRITES, check_wire, text_of

from skillrun.mcp.inflight import MOST, MOST_BYTES, InFlight
from skillrun.mcp.messages import Answer, read

if TYPE_CHECKING:
    from mcp_world import Session, World

WAITS = """
    import sys, time
    open("out/ran", "a").write("x")
    while not __import__("os").path.exists("out/go"): time.sleep(0.05)
    print("said", *sys.argv[1:])
"""
PROGRESS = """
    import json, os
    fd = int(os.environ["SKILLRUN_EVENTS_FD"])
    for value in range(1, 6):
        os.write(fd, (json.dumps({"progress": "at", "value": value}) + "\\n").encode())
    print("done")
"""
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def codes(session: Session, asker: Any) -> list[int]:
    """Return the codes of all errors that were sent to an asker so far."""
    found = [json.loads(line) for line in session.lines]
    return [one["error"]["code"] for one in found if "error" in one and one["id"] == asker]


def test_an_id_that_is_under_way_is_refused_and_loses_nothing(world: World) -> None:
    """The second call with an id does not run, the first is answered; a cancel ends what runs; an id is free again."""
    world.skill("demo", front=WRITES, wait=WAITS, live=LIVES, ok="print('fine')")
    (world.workspace / "out").mkdir()
    ran = world.workspace / "out" / "ran"
    session = world.start("--ceiling", str(world.ceiling(OPEN)))
    session.hello()
    session.call(1, "demo__wait", {"args": ["first"]})
    until(ran)
    for same in (1, "1", 1.0, " 1"):
        session.call(same, "demo__wait", {"args": ["second"]})
    for same in (1, "1", 1, " 1"):
        refused = session.find(lambda one, same=same: one.get("id") == same and "error" in one)
        assert refused["error"]["code"] == -32600
        assert "under way" in refused["error"]["message"]
    (world.workspace / "out" / "go").touch()
    assert text_of(session.answer(1)) == "said first"
    assert ran.read_text() == "x"
    session.call(1, "demo__ok")
    assert text_of(session.answer(1)) == "fine"

    session.call("a", "demo__live")
    until(world.workspace / "out" / "beat")
    session.call("a", "demo__live")
    assert session.answer("a")["error"]["code"] == -32600
    session.send(method="notifications/cancelled", params={"requestId": "a"})
    assert not alive(world.workspace / "out" / "beat")
    session.call("a", "demo__ok")
    assert text_of(session.answer("a")) == "fine"
    assert session.close() == 0
    check_wire(session)


def test_what_is_no_message_is_answered_and_runs_nothing(world: World) -> None:
    """Bytes that are not UTF-8, batches, ids of other types and lines without end: an error each, and nothing is called."""
    world.skill("demo", front=WRITES, ran="import sys; open('out/ran', 'a').write('x'); print('ran')")
    (world.workspace / "out").mkdir()
    session = world.start("--ceiling", str(world.ceiling(OPEN)))
    session.hello()

    def call(identity: str, words: str = "a") -> bytes:
        params = f'{{"name":"demo__ran","arguments":{{"args":["{words}"]}}}}'
        return f'{{"jsonrpc":"2.0","id":{identity},"method":"tools/call","params":{params}}}'.encode()

    wrong = [
        (call("5").replace(b'"a"', b'"\xff"'), -32700),
        (call("5")[:-1], -32700),
        (b"[" + call("5") + b"]", -32600),
        (b"[]", -32600),
        (b"null", -32600),
        (call("1.5"), -32600),
        (call("1e999"), -32600),
        (call("null"), -32600),
        (call("true"), -32600),
        (call("[1]"), -32600),
        (call("9" * 4_000), -32600),
        (call("-" + "9" * 200_000), -32700),
        (call("5").replace(b'"2.0"', b'"1.0"').replace(b'"id":5', b'"id":null'), -32600),
        (call("5", "a" * (17 << 20)), -32600),
    ]
    before = psutil.Process(session.process.pid).memory_info().rss
    for line, _ in wrong:
        session.raw(line + b"\n")
    # Neither what looks like an answer nor an empty line is answered: two programs could go on like that for ever.
    session.raw(b'\n \r\n{"jsonrpc":"2.0","id":5,"result":[]}\n{"id":5,"error":1}\n')
    session.raw(
        b'{"jsonrpc":"2.0","id":99,"result":{}}\n{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}\n'
    )
    for asker, line in (
        ("x", b'{"jsonrpc":"2.0","id":"x","method":5}'), (4, b'{"id":4,"method":"ping"}'), (6, call("6", "\\ud800")),
    ):  # fmt: skip
        session.raw(line + b"\n")
        assert session.answer(asker)["error"]["code"] == -32600
    for _ in range(40):  # 680 MiB without an end of line
        session.raw(b"a" * (17 << 20))
    session.raw(b"\n")
    session.send(id="last", method="ping")
    assert session.answer("last")["result"] == {}
    assert codes(session, None) == [*(code for _, code in wrong), -32600]
    assert psutil.Process(session.process.pid).memory_info().rss - before < 200 << 20
    assert not (world.workspace / "out" / "ran").exists()

    long = "i" * 100_000
    session.call(long, "demo__ran")
    assert text_of(session.answer(long)) == "ran"
    session.raw(call("7.0") + b"\n")
    assert text_of(session.answer(7)) == "ran"
    assert session.close() == 0
    check_wire(session)


def test_notices_about_nothing_and_reused_tokens(world: World) -> None:
    """A cancel before, after, twice and malformed, answers that nobody waits for, one progress token for two calls."""
    world.skill("demo", ok="print('fine')", tell=PROGRESS)
    session = world.start()
    session.hello()
    for params in (
        {"requestId": 1}, {"requestId": 1, "reason": "x"}, {"requestId": None}, {"requestId": [1]}, {"requestId": True},
        {}, {"requestId": 1.0}, None,
    ):  # fmt: skip
        session.send(method="notifications/cancelled", **({} if params is None else {"params": params}))
    for token in ("nobody", 1, None, 1.5, [1]):
        session.send(method="notifications/progress", params={"progressToken": token, "progress": 1})
    session.send(id=99, result={})
    session.send(id=98, error={"code": 1, "message": "x"})
    session.call(1, "demo__ok")
    assert text_of(session.answer(1)) == "fine"
    session.send(method="notifications/cancelled", params={"requestId": 1})
    session.call(1, "demo__ok")
    assert text_of(session.answer(1)) == "fine"

    for token in ("same", "same", 7, 1.5, True, None, {"a": 1}, "\x00" * 1000):
        number = f"call-{time.monotonic_ns()}"
        params = {"name": "demo__tell", "arguments": {}, "_meta": {"progressToken": token}}
        session.send(id=number, method="tools/call", params=params)
        answer = session.answer(number)
        assert "error" in answer or text_of(answer) == "done"
    params = {"name": "demo__tell", "arguments": {}, "_meta": {"progressToken": "both"}}
    for number in ("one", "two"):
        session.send(id=number, method="tools/call", params=params)
    assert [text_of(session.answer(number)) for number in ("one", "two")] == ["done", "done"]
    assert session.close() == 0
    check_wire(session)
    told = [json.loads(line) for line in session.lines if b"notifications/progress" in line]
    assert {one["params"]["progressToken"] for one in told} >= {"same", 7, "both"}
    assert b"Traceback" not in session.errors


def test_who_says_often_that_it_is_there_is_told_once(world: World) -> None:
    """A client that repeats `notifications/initialized` gets one word for each change."""
    folder = world.skill("demo", ok="print('fine')")
    session = world.start()
    session.hello()
    for _ in range(50):
        session.send(method="notifications/initialized")
    session.send(id=1, method="tools/list")
    session.answer(1)
    time.sleep(1)
    (folder / "scripts" / "more.py").write_text("#!/usr/bin/env python3\nprint(1)\n")
    session.find(lambda one: one.get("method") == "notifications/tools/list_changed")
    time.sleep(0.5)
    assert session.close() == 0
    told = [line for line in session.lines if b"notifications/tools/list_changed" in line]
    assert len(told) == 1


def test_the_eras_are_not_mixed(world: World) -> None:
    """A second handshake changes nothing that is under way; a request of the other era is refused, on either."""
    world.skill("demo", front=WRITES, wait=WAITS, ok="print('fine')")
    (world.workspace / "out").mkdir()
    session = world.start("--ceiling", str(world.ceiling(OPEN)))
    session.hello()
    session.call(1, "demo__wait", {"args": ["first"]})
    until(world.workspace / "out" / "ran")
    session.hello()
    session.send(id=2, method="tools/call", params={"name": "demo__ok", "_meta": MODERN})
    assert session.answer(2)["error"]["code"] == -32600
    (world.workspace / "out" / "go").touch()
    assert text_of(session.answer(1)) == "said first"
    assert session.close() == 0

    session = world.start()
    session.call(0, "demo__ok")
    assert "error" in session.answer(0)
    assert session.close() == 0

    session = world.start()
    session.send(id=1, method="tools/call", params={"name": "demo__ok", "_meta": MODERN})
    assert text_of(session.answer(1)) == "fine"
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    session.send(id=2, method="initialize", params=hello)
    assert session.answer(2)["error"]["code"] == types.UNSUPPORTED_PROTOCOL_VERSION
    session.call(3, "demo__ok")
    assert session.answer(3)["error"]["code"] == -32602
    session.send(id=4, method="tools/call", params={"name": "demo__ok", "_meta": MODERN})
    assert text_of(session.answer(4)) == "fine"
    assert session.close() == 0


def test_answers_to_questions_are_not_taken_before_they_are_asked(world: World) -> None:
    """A yes sent ahead, twice, to another question or in another form runs nothing but what was asked about."""
    world.skill("careful", front=FRONT, go=COUNT)
    ran = world.workspace / "out" / "ran"
    session = world.start("--ceiling", str(world.ceiling(OPEN)))
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info}
    session.send(id="hello", method="initialize", params=params)
    session.answer("hello")
    session.send(method="notifications/initialized")
    yes = {"action": "accept", "content": {"agree": True}}
    for number in range(10):
        session.send(id=number, result=yes)
    session.call("a", "careful__go")
    session.call("b", "careful__go")
    asked = [session.find(lambda one: one.get("method") == "elicitation/create") for _ in range(2)]
    time.sleep(0.5)
    assert not ran.exists()
    session.send(id=asked[0]["id"], result={"action": "accept", "content": {"agree": "true"}})
    session.send(id=asked[0]["id"], result=yes)
    session.send(id=f"{asked[1]['id']}x", result=yes)
    session.send(id=asked[1]["id"], result={**yes, "action": "decline"})
    assert session.answer("a")["result"]["isError"]
    assert session.answer("b")["result"]["isError"]
    for shape in (
        {"action": "accept"},
        {"action": "accept", "content": None},
        {"content": {"agree": True}},
        {},
    ):
        session.call("c", "careful__go")
        question = session.find(lambda one: one.get("method") == "elicitation/create")
        session.send(id=question["id"], result=shape)
        refused = session.answer("c")
        assert "error" in refused or refused["result"]["isError"]
    assert not ran.exists()
    session.call("d", "careful__go")
    question = session.find(lambda one: one.get("method") == "elicitation/create")
    session.send(id=question["id"], result=yes)
    session.send(id=question["id"], result=yes)
    assert text_of(session.answer("d")) == "ran"
    assert ran.read_text() == "x"
    assert session.close() == 0
    assert b"Traceback" not in session.errors


def test_requests_in_flight_are_bounded() -> None:
    """Neither their number nor their bytes grow without end; what was answered makes room; whoever asks has ids of its own."""
    open_ = InFlight()
    assert open_.begin(0, MOST_BYTES) is None
    assert open_.begin(1, 1) is not None
    open_.end(0)
    open_.end(0)
    assert all(open_.begin(number, 1) is None for number in range(MOST))
    assert open_.begin("another", 1) is not None
    open_.end("7")
    assert open_.begin("another", 1) is None
    other = InFlight()
    assert other.begin(7, 1, whose="a") is None
    assert other.begin("7", 1, whose="a") is not None
    assert other.begin(7, 1, whose="b") is None


def test_a_notification_with_an_id_somewhere_inside_is_one() -> None:
    """Only an `id` of the message itself makes it a request."""
    made = read(b'{"jsonrpc":"2.0","method":"notifications/x","params":{"id":1.5}}')
    assert isinstance(made, types.JSONRPCNotification)
    assert isinstance(read(b'{"jsonrpc":"2.0","method":"x","id":1.5}'), Answer)
    assert read(b'{"jsonrpc":"2.0","method":"x","id":2.0}').id == 2
