"""`skillrun mcp-run`: a server of somebody else's, confined, spoken to by the SDK's own client."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_world import alive, until
from test_service import in_loop

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_world import World

# A server as small as one can be: it reads what it is asked to read, and leaves a child behind that writes all the time.
SERVER = """
    import json, os, subprocess, sys
    beat = "import time\\nwhile True:\\n    open('out/beat', 'a').write('x'); time.sleep(0.05)"
    subprocess.Popen([sys.executable, "-c", beat], start_new_session=True, stdin=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        result = {}
        if asked["method"] == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "theirs", "version": "1"}}
        elif asked["method"] == "tools/list":
            result = {"tools": [{"name": name, "description": "Reads.", "annotations": {"readOnlyHint": True},
                                 "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}
                                for name in ("peek", "read")]}
        elif asked["method"] == "tools/call":
            try:
                text = open(asked["params"]["arguments"]["path"]).read()
            except OSError as wrong:
                text = type(wrong).__name__
            text += " " + os.environ["HOME"]
            result = {"content": [{"type": "text", "text": text}]}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    if "stay" in sys.argv:
        import time
        time.sleep(600)
"""
CEILING = """
    sandbox:
      fs_read: ["${workspace}"]
      fs_write: ["${workspace}/out"]
"""


def command(world: World, *words: str, confined: bool = True) -> list[str]:
    """Write the command line of the server."""
    (world.workspace / "server.py").write_text(textwrap.dedent(SERVER))
    (world.workspace / "out").mkdir(exist_ok=True)
    theirs = [sys.executable, "server.py", *words]
    if not confined:
        return theirs
    ceiling = str(world.ceiling(CEILING))
    return [
        sys.executable,
        "-m",
        "skillrun",
        "mcp-run",
        "--ceiling",
        ceiling,
        "--workspace",
        ".",
        "--",
        *theirs,
    ]


@pytest.mark.parametrize("confined", [True, False], ids=["confined", "control"])
@in_loop
async def test_a_server_reads_what_the_ceiling_allows(world: World, *, confined: bool) -> None:
    """Its workspace, and not the home; unconfined, the same server reads both. At the end nothing of it lives."""
    secret = world.home / "secret"
    secret.write_text("secret")
    (world.workspace / "mine").write_text("mine")
    words = command(world, confined=confined)
    parameters = StdioServerParameters(
        command=words[0], args=words[1:], cwd=world.workspace, env={"HOME": str(world.home)}
    )
    async with Client(parameters, mode="legacy") as client:

        async def read(path: Path) -> Any:
            done = await client.call_tool("read", {"path": str(path)})
            return done.content[0].text.split()

        assert [tool.name for tool in (await client.list_tools()).tools] == ["peek", "read"]
        assert (await read(world.workspace / "mine"))[0] == "mine"
        found, home = await read(secret)
        assert (found == "secret") is not confined
        assert (home == str(world.home)) is not confined
        until(world.workspace / "out" / "beat")
    if confined:
        assert not alive(world.workspace / "out" / "beat")
    else:
        assert alive(world.workspace / "out" / "beat", seconds=1)
        (world.workspace / "out").rename(
            world.workspace / "gone"
        )  # the child of the control ends by its next write


def test_a_server_that_stays_is_ended(world: World) -> None:
    """One that goes on without its client is ended after a few seconds, with what it started."""
    words = command(world, "stay")
    began = time.monotonic()
    done = subprocess.run(words, cwd=world.workspace, stdin=subprocess.DEVNULL, check=False, timeout=60)
    assert done.returncode == 0
    assert 4 < time.monotonic() - began < 40
    assert not alive(world.workspace / "out" / "beat")


def fill(descriptor: int) -> None:
    """Write until nothing is taken for a second: the relay holds some, and has a pipe of its own."""
    end = time.monotonic() + 1
    while time.monotonic() < end:
        if select.select([], [descriptor], [], 0.05)[1]:
            with contextlib.suppress(BlockingIOError):
                os.write(descriptor, b"a" * 4096)
                end = time.monotonic() + 1


@pytest.mark.parametrize("kind", ["pipe", pytest.param("socket", marks=pytest.mark.slow)])
def test_a_server_that_does_not_read_is_ended_without_its_client(world: World, kind: str) -> None:
    """It lets what its client sends pile up and goes on: when the client has gone it is ended all the same."""
    words = command(world, confined=True)
    (world.workspace / "server.py").write_text(
        "import time\nwhile True:\n    open('out/beat', 'a').write('x'); time.sleep(0.05)\n"
    )
    if kind == "pipe":
        reading, writing = (os.fdopen(one, mode) for one, mode in zip(os.pipe(), ("rb", "wb"), strict=True))
    else:
        mine, theirs = socket.socketpair()
        reading, writing = theirs.makefile("rb"), mine.makefile("wb", buffering=0)
        theirs.close()
        mine.close()
    with subprocess.Popen(words, cwd=world.workspace, stdin=reading, stdout=subprocess.DEVNULL) as process:
        reading.close()
        until(world.workspace / "out" / "beat")
        os.set_blocking(writing.fileno(), False)
        fill(writing.fileno())
        assert process.poll() is None
        writing.close()
        assert process.wait(40) == 0
    assert not alive(world.workspace / "out" / "beat")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--", "true"], 2),
        pytest.param(["--ceiling", "default"], 2, marks=pytest.mark.slow),
        (["--ceiling", "default", "--", "no-such-program"], 2),
        (["--ceiling", "default", "--", "/bin/sh", "-c", "exit 7"], 7),
    ],
)
def test_exit_codes(world: World, words: list[str], code: int) -> None:
    """Without a ceiling or a command it is wrong usage; else the server's own exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "skillrun", "mcp-run", *words],
        cwd=world.workspace, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
