"""Standard input and output: the real command, spoken to line by line, by honest and by hostile scripts."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from mcp_world import alive, until

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_world import Session, World

LIARS = """
    import os, sys
    lie = b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"lie"}]}}\\n'
    os.write(1, lie); os.write(2, lie)
    for number in range(3, 256):
        try: os.write(number, lie)
        except OSError: pass
    for name in ("/proc/1/fd/1", "/dev/stdout", "/dev/tty", "/proc/%d/fd/1" % os.getppid()):
        try:
            with open(name, "wb") as file: file.write(lie)
        except OSError: pass
    print("read", len(sys.stdin.buffer.read()))
"""
WRITES = "fs_write: ./out\n"
OPEN = """
    sandbox:
      fs_read: ["${workspace}"]
      fs_write: ["${workspace}/out"]
"""
LIVES = """
    import os, subprocess, sys, time
    beat = "import time\\nwhile True:\\n    open('out/beat', 'a').write('x'); time.sleep(0.05)"
    subprocess.Popen([sys.executable, "-c", beat], start_new_session=True)
    open("out/up", "w").write("up")
    time.sleep(600)
"""


def text_of(answer: dict) -> str:
    """Return the first text of a result."""
    return answer["result"]["content"][0]["text"]


def check_wire(session: Session) -> None:
    """Each line on standard output is one JSON-RPC message."""
    assert session.lines
    for line in session.lines:
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        assert line.endswith(b"\n")


def test_calls_answers_and_a_wire_that_carries_the_protocol_alone(world: World, tmp_path: Path) -> None:
    """Results, argument errors and unknown tools in their forms; no script and no print reaches the wire or eats from it."""
    noisy = tmp_path / "noisy"
    noisy.mkdir()
    # Prints as a careless library would: late, from another thread, buffered until the end, and to the descriptor.
    (noisy / "sitecustomize.py").write_text(
        "import atexit, os, threading\n"
        "atexit.register(print, 'printed at the end')\n"
        "def late():\n    print('buffered'); os.write(1, b'straight\\n')\n"
        "timer = threading.Timer(6, late); timer.daemon = True; timer.start()\n"
    )
    world.skill("liar", lie=LIARS, ok="print('fine')", bad="raise SystemExit(3)")
    session = world.start(environ={"PYTHONPATH": str(noisy)})
    hello = session.hello()
    assert hello["serverInfo"]["name"] == "skillrun"
    session.send(id=1, method="tools/list")
    listed = session.answer(1)["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["liar__bad", "liar__lie", "liar__ok"]

    session.call(7, "liar__lie")
    session.call(8, "liar__ok")
    session.call(9, "liar__bad")
    session.call(10, "liar__ok", {"no_such": 1})
    session.call(11, "liar__okk")
    session.send(id=12, method="ping")
    lied = session.answer(7)
    assert lied["result"]["structuredContent"]["stdout"].endswith("read 0\n")
    assert text_of(session.answer(8)) == "fine"
    bad = session.answer(9)["result"]
    assert bad["isError"]
    assert bad["structuredContent"]["exit_code"] == 3
    wrong = session.answer(10)["result"]
    assert wrong["isError"]
    assert "no_such" in wrong["content"][0]["text"]
    unknown = session.answer(11)["error"]
    assert unknown["code"] == -32602
    assert "liar__ok" in unknown["message"]
    assert session.answer(12)["result"] == {}

    assert session.close() == 0
    check_wire(session)
    ids = [json.loads(line).get("id") for line in session.lines]
    assert sorted(ids, key=str) == sorted(["hello", 1, 7, 8, 9, 10, 11, 12], key=str)
    assert b"printed at the end" in session.errors


def test_a_cancel_kills_the_tree_and_is_not_answered(world: World) -> None:
    """After notifications/cancelled nothing of the script lives, no answer comes, and the next call works."""
    world.skill("long", front=WRITES, run=LIVES, ok="print('next')")
    (world.workspace / "out").mkdir()
    session = world.start("--ceiling", str(world.ceiling(OPEN)))
    session.hello()
    session.call(1, "long__run")
    until(world.workspace / "out" / "beat")
    session.send(id=2, method="ping")
    session.answer(2)
    session.send(method="notifications/cancelled", params={"requestId": 1, "reason": "enough"})
    session.call(3, "long__ok")
    assert text_of(session.answer(3)) == "next"
    assert not alive(world.workspace / "out" / "beat")
    assert session.close() == 0
    assert 1 not in [json.loads(line).get("id") for line in session.lines]


@pytest.mark.parametrize("how", ["end of input", "TERM", pytest.param("INT", marks=pytest.mark.slow)])
def test_whatever_ends_the_server_ends_the_scripts(world: World, how: str) -> None:
    """A closed connection or a signal ends every run, then the server, in a few seconds."""
    world.skill("long", front=WRITES, run=LIVES)
    (world.workspace / "out").mkdir()
    session = world.start("--ceiling", str(world.ceiling(OPEN)))
    session.hello()
    session.call(1, "long__run")
    beat = world.workspace / "out" / "beat"
    until(beat)
    began = time.monotonic()
    if how == "TERM":
        os.kill(session.process.pid, signal.SIGTERM)
        assert session.process.wait(30) == 143
    elif how == "INT":
        os.kill(session.process.pid, signal.SIGINT)
        assert session.process.wait(30) == 130
    else:
        assert session.close() == 0
    assert time.monotonic() - began < 20
    assert not alive(beat)


def test_lines_that_are_no_message_change_nothing(world: World) -> None:
    """Garbage, half characters, a line of 17 MiB and deep nesting are left behind; the next request is answered."""
    world.skill("demo", ok="print('fine')")
    session = world.start()
    session.hello()
    for garbage in (
        b"\n",
        b"{",
        b"\xff\xfe\n",
        b'{"jsonrpc":"2.0","id":' + b"[" * 5000 + b"\n",
        b"null\n",
        b"[]\n",
    ):
        session.raw(garbage)
    session.raw(b'\n{"jsonrpc":"2.0","id":5,"method":"' + b"a" * (17 << 20) + b'"}\n')
    session.send(id=6, method="ping")
    assert session.answer(6)["result"] == {}
    assert session.close() == 0
    check_wire(session)


def test_a_workspace_has_to_be_named(world: World) -> None:
    """Without --workspace nothing is served, and there is no way to serve without confinement."""
    import subprocess
    import sys

    for words in (
        ["mcp"],
        ["mcp", "--workspace", ".", "--allow-unconfined"],
        ["mcp", "--workspace", ".", "--require", "none"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "skillrun", *words],
            cwd=world.workspace, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 2
        assert done.stdout == ""
        assert "error" in done.stderr
