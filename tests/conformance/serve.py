"""Serve the fixture skill to the public conformance suite: `python serve.py PORT`.

The very application of `skillrun mcp --http`, gate included. Two things are the suite's own: it calls tools by the
bare name of the script, so the skill's name is left out; and it can send no token, so one is added before the gate.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn

from skillrun.host import current_host
from skillrun.mcp.assemble import Assembly
from skillrun.mcp.http import application
from skillrun.runner import Runner
from skillrun.tools import script_tool

if TYPE_CHECKING:
    from starlette.types import ASGIApp

TOKEN = "conformance"
SKILLS = Path(__file__).parent / "skills"


def with_token(app: ASGIApp) -> ASGIApp:
    """Add the token to every request."""

    async def added(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            word = (b"authorization", f"Bearer {TOKEN}".encode())
            scope = {**scope, "headers": [*scope["headers"], word]}
        await app(scope, receive, send)

    return added


def bare(_skill: str, script: str, *_: Any, **__: Any) -> str:
    """Name a tool by its script alone."""
    return Path(script).stem


async def serve(runner: Runner, port: int) -> None:
    """Serve until killed."""
    made = Assembly(
        runner,
        named=(SKILLS,),
        at_once=8,
        narrow=lambda _: runner,
        on_result=lambda *_: None,
        on_problems=lambda _: None,
    ).make()
    hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
    config = uvicorn.Config(with_token(application(made, TOKEN, hosts)), port=port, log_level="error")
    async with anyio.create_task_group() as group:
        group.start_soon(made.watch)
        await uvicorn.Server(config).serve()
        group.cancel_scope.cancel()


def main() -> None:
    """Serve the fixture in an empty workspace."""
    script_tool.script_name = bare
    with tempfile.TemporaryDirectory() as workspace:
        runner = Runner(
            workspace=Path(workspace).resolve(), skills=(SKILLS,), ceiling="default", host=current_host()
        )
        with runner:
            anyio.run(serve, runner, int(sys.argv[1]))


if __name__ == "__main__":
    main()
