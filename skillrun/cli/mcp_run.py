"""`skillrun mcp-run`: an MCP server of somebody else's, confined, for any client that starts servers."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillrun.cli.command import HELP, Option, Verb, colour_option, say, verbose_option
from skillrun.cli.interrupts import Stopped
from skillrun.cli.logbook import log_option, records
from skillrun.cli.setting import Setting, current
from skillrun.errors import UsageError
from skillrun.host import current_host
from skillrun.launch.result import Termination
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.launch.result import Result


@click.command(
    "mcp-run",
    cls=Verb,
    context_settings={**HELP, "ignore_unknown_options": False},
    epilog="\b\nExamples:\n  skillrun mcp-run --ceiling files.yaml --workspace . -- npx -y some-mcp-server\n\n"
    "Exit codes: the server's own; 2 wrong usage or configuration, 125 nothing was started, 128+n ended by a signal.",
)
@click.option(
    "--ceiling", cls=Option, section="Sandbox", metavar="FILE|PRESET", help="What the server may do; needed."
)
@click.option("--workspace", cls=Option, section="Input", metavar="DIR",
              help="The folder it works in.  [default: an empty one of its own]")  # fmt: skip
@click.option("--backend", cls=Option, section="Sandbox", metavar="NAME",
              help="What enforces it.  [default: this platform's]")  # fmt: skip
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND…")
@log_option
@verbose_option
@colour_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    ceiling: str | None,
    workspace: str | None,
    backend: str | None,
    command: tuple[str, ...],
    log: str | None,
) -> int:
    """Run COMMAND, a server that speaks MCP on its standard streams, confined to what the ceiling allows.

    It gets all that the ceiling allows and nothing else, lives as long as the client keeps the connection, and has
    a home and a cache of its own, which are removed.
    """
    if ceiling is None:
        message = "no ceiling is named, and it is all that limits this server"
        raise UsageError(error("mcp-ceiling", message, help="add `--ceiling FILE`"))
    from skillrun.mcp.confined import serve_confined  # noqa: PLC0415 - only the mcp commands touch that room

    with _folder(workspace) as folder:
        setting = Setting(ceiling=ceiling, workspace=folder, backend=backend)
        written = records(log, current_host(), current())
        with setting.runner(ctx.obj, recorder=written) as runner:
            try:
                result = serve_confined(runner, command)
            except Stopped as stopped:
                return stopped.exit_code
    if result.error is not None:
        say(ctx, (result.error,))
    return _exit_code(result)


@contextlib.contextmanager
def _folder(named: str | None) -> Iterator[str]:
    if named is not None:
        yield named
        return
    with tempfile.TemporaryDirectory(prefix="skillrun-work-") as made:
        yield str(Path(made).resolve())


def _exit_code(result: Result) -> int:
    match result.termination:
        case Termination.EXITED:
            return result.exit_code or 0
        case Termination.SIGNALED:
            return 128 + (result.signal or 0)
        case Termination.TIMED_OUT:
            return 124
        case Termination.CANCELLED:
            return 0  # its client had gone
        case _:
            return 125
