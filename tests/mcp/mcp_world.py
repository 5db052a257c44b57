"""What the MCP tests share: a workspace with skills, the real command, and the SDK's own client."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp.client.client import Client

from skillrun.host import Host
from skillrun.mcp.assemble import Assembly
from skillrun.runner import Runner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from skillrun.mcp.server import Service

WAIT = 60.0
"""Seconds after which an answer is lost; the machine may be busy."""


class Session:
    """`skillrun mcp` as a client starts it, spoken to line by line."""

    def __init__(self, command: list[str], environ: dict[str, str], cwd: Path) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.lines: list[bytes] = []
        self.errors = bytearray()
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._kept: list[dict[str, Any]] = []
        self._threads = [threading.Thread(target=work) for work in (self._read, self._drain)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line)
            with contextlib.suppress(ValueError):
                self._answers.put(json.loads(line))

    def _drain(self) -> None:
        for line in self.process.stderr:
            self.errors += line

    def send(self, **message: Any) -> None:
        """Send one message."""
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        """Send bytes."""
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def answer(self, number: Any) -> dict[str, Any]:
        """Wait for the answer to a request."""
        return self.find(lambda one: one.get("id") == number and "method" not in one)

    def find(self, wanted: Any) -> dict[str, Any]:
        """Wait for a message and take it; others are kept for later."""
        end = time.monotonic() + WAIT
        for place, one in enumerate(self._kept):
            if wanted(one):
                return self._kept.pop(place)
        while True:
            left = end - time.monotonic()
            assert left > 0, f"no answer; {self.errors.decode(errors='replace')}"
            with contextlib.suppress(queue.Empty):
                one = self._answers.get(timeout=min(left, 0.5))
                if wanted(one):
                    return one
                self._kept.append(one)

    def hello(self) -> dict[str, Any]:
        """Shake hands as clients up to 2025-11-25 do."""
        info = {"name": "test", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        self.send(id="hello", method="initialize", params=params)
        found = self.answer("hello")
        self.send(method="notifications/initialized")
        return found["result"]

    def call(self, number: Any, name: str, arguments: dict[str, Any] | None = None) -> None:
        """Ask for a call and do not wait."""
        self.send(id=number, method="tools/call", params={"name": name, "arguments": arguments or {}})

    def close(self) -> int:
        """Close its input and wait for its end."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait(WAIT)
        for thread in self._threads:
            thread.join(WAIT)
        return code

    def end(self) -> None:
        """End it, whatever the test did."""
        if self.process.poll() is None:
            self.process.kill()
        self.close()
        self.process.stdout.close()
        self.process.stderr.close()


@dataclass
class World:
    """A workspace whose skills are written by a test, and what serves them."""

    workspace: Path
    home: Path
    runners: list[Runner] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)

    def skill(self, name: str, *, front: str = "", **scripts: str) -> Path:
        """Write a skill; scripts by their stem, in Python or, when they begin with `#!/bin/sh`, in shell."""
        folder = self.workspace / "skills" / name
        (folder / "scripts").mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: The skill {name}.\n{textwrap.dedent(front)}---\n\nDo it.\n"
        (folder / "SKILL.md").write_text(text)
        for stem, script in scripts.items():
            text = textwrap.dedent(script).lstrip()
            shell = text.startswith("#!/bin/sh")
            path = folder / "scripts" / f"{stem}{'.sh' if shell else '.py'}"
            path.write_text(text if shell else f"#!/usr/bin/env python3\n{text}")
        return folder

    def ceiling(self, text: str) -> Path:
        """Write the operator's file."""
        path = self.home / "ceiling.yaml"
        path.write_text(textwrap.dedent(text))
        return path

    def service(self, ceiling: Path | str = "default", **settings: Any) -> Service:
        """Make a service in this process, inside a loop."""
        host = Host(home=self.home, environ={"PATH": "/usr/bin:/bin"}, state=self.home / "state")
        skills = (self.workspace / "skills",)

        def runner(workspace: Path) -> Runner:
            self.runners.append(Runner(workspace=workspace, skills=skills, ceiling=ceiling, host=host))
            return self.runners[-1]

        made = Assembly(
            runner(self.workspace),
            named=skills,
            at_once=8,
            narrow=runner,
            on_result=lambda _call, outcome: self.results.append(outcome),
            on_problems=lambda _problems: None,
            **settings,
        )
        return made.make()

    @contextlib.asynccontextmanager
    async def client(
        self, mode: str = "auto", ceiling: Path | str = "default", **settings: Any
    ) -> AsyncIterator[Client]:
        """Give the SDK's client, connected to a service in this process."""
        service = self.service(ceiling)
        async with Client(service.server(), mode=mode, **settings) as client:
            yield client
        service.close()

    def start(self, *words: str, environ: dict[str, str] | None = None) -> Session:
        """Start the real command."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        surroundings = {
            **kept,
            "HOME": str(self.home),
            "PYTHONDONTWRITEBYTECODE": "1",
            **(environ or {}),
        }
        command = [sys.executable, "-m", "skillrun", "mcp", "--skills", "skills", "--workspace", ".", *words]
        made = Session(command, surroundings, self.workspace)
        self.sessions.append(made)
        return made


def alive(path: Path, seconds: float = 10.0) -> bool:
    """Whether anything still writes to a file: a script that lives appends to it all the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = path.stat().st_size
        time.sleep(0.5)
        if path.stat().st_size == before:
            return False
    return True


def until(path: Path) -> None:
    """Wait until a file has something in it."""
    end = time.monotonic() + WAIT
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < end, f"{path} did not come"
        time.sleep(0.02)
