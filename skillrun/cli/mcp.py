"""`skillrun mcp`: the scripts of skills as tools of any MCP client, confined."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from skillrun.cli.command import HELP, Option, Verb, colour_option, emit_bytes, say, verbose_option
from skillrun.cli.logbook import log_option, records
from skillrun.cli.mcp_config import CLIENTS, own_command, written
from skillrun.cli.setting import Setting, current, setting_options
from skillrun.errors import UsageError
from skillrun.host import current_host
from skillrun.problem import error
from skillrun.report.escape import escape, sentence
from skillrun.running.admission import AT_ONCE

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.problem import Problem
    from skillrun.tools.outcome import Outcome, ToolCall
    from skillrun.tools.tool import Tool


@click.command(
    "mcp",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun mcp --skills ./skills --workspace .\n"
    "  skillrun mcp --skills ./skills --workspace . --http 8080\n"
    "  skillrun mcp --skills ./skills --workspace . --print-config claude\n\n"
    "Exit codes: 0 the client closed the connection, 2 wrong usage or configuration, 128+n stopped by a signal.",
)
@setting_options(running=True, serving=True)
@click.option("--http", cls=Option, section="Input", metavar="[HOST:]PORT",
              help="Serve streamable HTTP on a port, of this machine alone unless HOST says otherwise. A token is made "
              "at each start.  [default: standard input and output]")  # fmt: skip
@click.option("--servers", cls=Option, section="Input", metavar="FILE",
              help="Serve the tools of other MCP servers too, each confined by a ceiling of its own.")  # fmt: skip
@click.option("--print-config", "client", cls=Option, type=click.Choice(list(CLIENTS)),
              help="Write what a client's own file says to start this server, and serve nothing.")  # fmt: skip
@log_option
@verbose_option
@colour_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    setting: Setting,
    http: str | None,
    servers: str | None,
    client: str | None,
    log: str | None,
) -> int:
    """Serve every script as a tool over the Model Context Protocol.

    Scripts run confined in the workspace, which has to be named. What a script lacks is said here, on standard
    error, and never to a model.
    """
    if setting.workspace is None:
        raise UsageError(
            error(
                "mcp-workspace",
                "no workspace is named",
                help="add `--workspace DIR`; a client can only narrow it",
            )
        )
    if client is not None:
        emit_bytes(written(client, setting).encode("utf-8", "backslashreplace"))
        return 0
    _need_sdk()
    # The descriptors first: what a library prints while it is loaded must not reach the client.
    from skillrun.mcp.descriptors import Descriptors  # noqa: PLC0415 - only this command touches mcp

    descriptors = Descriptors()
    _speak()
    logged = records(log, current_host(), current())
    with contextlib.ExitStack() as stack:
        runner = stack.enter_context(setting.runner(ctx.obj, at_once=AT_ONCE, recorder=logged, start=False))
        from skillrun.mcp.assemble import Assembly  # noqa: PLC0415 - see above

        assembly = Assembly(
            runner,
            named=tuple(current() / root for root in setting.skills),
            at_once=AT_ONCE,
            narrow=lambda folder: stack.enter_context(
                replace(setting, workspace=str(folder)).runner(ctx.obj, recorder=logged, start=False)
            ),
            on_result=_tell,
            on_problems=lambda problems: say(ctx, problems),
            more=() if servers is None else _remote(ctx, stack, current() / servers),
        )
        if http is None:
            from skillrun.mcp.stdio import serve_stdio  # noqa: PLC0415 - see above

            stopped = serve_stdio(assembly.make, descriptors)
        else:
            from skillrun.mcp.http import serve_on_port  # noqa: PLC0415 - see above

            stopped = serve_on_port(assembly.make, http, state=current_host().state, told=_serving)
    return 0 if stopped is None else 128 + stopped


def _remote(ctx: click.Context, stack: contextlib.ExitStack, file: Path) -> tuple[Tool, ...]:
    """Start other servers and say which can't be used."""
    from skillrun.mcp.remote import connected  # noqa: PLC0415 - only this command touches mcp
    from skillrun.mcp.servers import read_servers  # noqa: PLC0415 - see above

    environ = current_host().environ
    tools, problems = stack.enter_context(connected(read_servers(file), own=own_command(), environ=environ))
    say(ctx, problems)
    return tools


def _serving(url: str, token: Path) -> None:
    click.echo(f"skillrun: serving {url}, the token is in {escape(str(token))}", err=True)


def _need_sdk() -> None:
    """Raise UsageError where the SDK is not installed."""
    from importlib.util import find_spec  # noqa: PLC0415 - only this command looks

    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        advice = "install `skillrun-sandbox[mcp]`"
        raise UsageError(error("mcp-missing", "the MCP SDK (mcp 2) is not installed", help=advice))


class _Lines(logging.Formatter):
    """Writes a record as one line, text of scripts escaped; where it happened only for who asks for it."""

    def format(self, record: logging.LogRecord) -> str:
        text = f"skillrun: {sentence(record.getMessage())}"
        if record.exc_info and os.environ.get("SKILLRUN_DEBUG") == "1":
            text += "\n" + self.formatException(record.exc_info)
        return text


def _speak() -> None:
    """Let the library and the SDK say warnings on standard error, one a line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_Lines())
    logging.getLogger().addHandler(handler)


def _tell(call: ToolCall, outcome: Outcome) -> None:
    """Tell the operator what a run lacked."""
    run = outcome.result
    if run is None:
        return
    told: list[Problem | Any] = [run.error] if run.error is not None else []
    for problem in (*told, *run.violations):
        _line(call, f"{problem.message}; {problem.help}" if problem.help else problem.message)
    if outcome.is_error:
        for denial in run.denials:
            _line(call, f"{denial.operation} {denial.path or ''} was denied; {denial.fix or ''}")


def _line(call: ToolCall, text: str) -> None:
    click.echo(f"skillrun: {call.name}: {sentence(text)}", err=True)
