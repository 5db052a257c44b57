"""The program: the group of commands, loaded one by one, and what becomes of an error."""

from __future__ import annotations

import difflib
import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

import skillrun
from skillrun.cli.command import HELP, Verb, internal, report_usage, say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    from skillrun.cli.interrupts import Interrupts

COMMANDS: Final = {
    "list": "Skills, scripts, what they ask for, what is wrong.",
    "show": "One skill: asked, limited, granted, enforced.",
    "run": "Run a script of a skill, confined.",
    "batch": "Make many calls from a file, a few at once.",
    "explain": "Why a path or host is allowed or not.",
    "tools": "Scripts as tools for a model, in its API's words.",
    "call": "Call one tool and read what a model would.",
    "chat": "Let a model call tools until it has answered.",
    "pending": "Calls that wait for a person, a task, a process.",
    "approve": "Agree to a call that waits, as it is shown.",
    "deny": "Say no to a call that waits.",
    "answer": "Answer the question of a call that waits.",
    "settle": "End a call, or make one in doubt again.",
    "profile": "What enforces a skill, as text.",
    "audit": "What is wrong with a Seatbelt profile.",
    "check": "Findings on skills, for CI.",
    "lock": "Pin what was approved: permissions and files.",
    "diff": "What a change does to permissions.",
    "rule": "What a rule of `check` is about.",
    "mcp": "Serve scripts as tools over MCP, confined.",
    "mcp-run": "Run an MCP server, confined.",
    "doctor": "What this machine can enforce, tried out.",
    "init": "Make a skill that works, or a ceiling file.",
}
# Each by its own name in the source, so that the test of the rooms sees what is imported.
_MODULES: Final[Mapping[str, Callable[[], ModuleType]]] = {
    "list": lambda: import_module("skillrun.cli.list"),
    "show": lambda: import_module("skillrun.cli.show"),
    "run": lambda: import_module("skillrun.cli.run"),
    "batch": lambda: import_module("skillrun.cli.batch"),
    "explain": lambda: import_module("skillrun.cli.explain"),
    "tools": lambda: import_module("skillrun.cli.tools"),
    "call": lambda: import_module("skillrun.cli.call"),
    "chat": lambda: import_module("skillrun.cli.chat"),
    "pending": lambda: import_module("skillrun.cli.pending"),
    "approve": lambda: import_module("skillrun.cli.approve"),
    "deny": lambda: import_module("skillrun.cli.deny"),
    "answer": lambda: import_module("skillrun.cli.answer"),
    "settle": lambda: import_module("skillrun.cli.settle"),
    "profile": lambda: import_module("skillrun.cli.profile"),
    "audit": lambda: import_module("skillrun.cli.audit"),
    "check": lambda: import_module("skillrun.cli.check"),
    "lock": lambda: import_module("skillrun.cli.lock"),
    "diff": lambda: import_module("skillrun.cli.diff"),
    "rule": lambda: import_module("skillrun.cli.rule"),
    "mcp": lambda: import_module("skillrun.cli.mcp"),
    "mcp-run": lambda: import_module("skillrun.cli.mcp_run"),
    "doctor": lambda: import_module("skillrun.cli.doctor"),
    "init": lambda: import_module("skillrun.cli.init"),
}
_PIPE_CLOSED: Final = 141  # 128 + SIGPIPE: what a shell says of a program whose reader is gone


class Commands(click.Group):
    """The commands by name. Each lives in a file of its own that is read when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Give the names in the order in which one meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Load one command."""
        return load(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is meant; the nearest one is named when there is none."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=1)
            advice = f"did you mean `{near[0]}`?" if near else "`skillrun --help` lists the commands"
            raise click.UsageError(f"there is no command `{name}`\n{advice}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def load(name: str) -> click.Command | None:
    """Import one command. Each brings the whole library with it, which `--version` and `--help` must not pay for."""
    if name not in _MODULES:
        return None
    command: click.Command = _MODULES[name]().command
    return command


@click.group(
    cls=Commands,
    context_settings=HELP,
    epilog="\b\nExamples:\n"
    "  skillrun list skills\n"
    "  skillrun show pdf-tools\n"
    "  skillrun run pdf-tools extract.py -- in.pdf\n\n"
    "`skillrun COMMAND --help` explains each command.",
)
@click.version_option(skillrun.__version__, "--version", message="skillrun %(version)s")
def group() -> None:
    """Run the scripts of agent skills so that each can touch only what was asked for and allowed."""


def execute(arguments: Sequence[str] | None, interrupts: Interrupts) -> int:
    """Run one command line and return its exit code. No traceback reaches a user."""
    _open_standard_streams()
    if "_SKILLRUN_COMPLETE" in os.environ:
        group.main(prog_name="skillrun", complete_var="_SKILLRUN_COMPLETE")
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with group.make_context("skillrun", words, obj=interrupts) as context:
            answer = group.invoke(context)
    except click.exceptions.Exit as left:
        answer = left.exit_code
    except click.ClickException as wrong:
        answer = report_usage(wrong, default=_usage_exit(words))
    except BrokenPipeError:
        answer = _PIPE_CLOSED
    except Exception as bug:  # noqa: BLE001 - outside of any command, and still no traceback reaches a user
        say(click.Context(group), (internal(bug),))
        answer = _usage_exit(words)
    answer = _flush(answer)
    return answer if isinstance(answer, int) else 0


def _usage_exit(words: Sequence[str]) -> int:
    """Return the exit code of a usage error that belongs to no command."""
    command = next((word for word in words if not word.startswith("-")), None)
    return 125 if command == "run" else Verb.usage_exit


def _open_standard_streams() -> None:
    """Open what the caller closed: else the next file or socket gets its number, and a script's output lands there."""
    for number in range(3):
        if not _is_open(number):
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        # A terminal of another encoding must not turn a name into a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _flush(answer: Any) -> Any:
    """Write what is left; a reader that is gone is no error to talk about."""
    lost = [stream for stream in (sys.stdout, sys.stderr) if stream is not None and not _flushed(stream)]
    for stream in lost:
        # Python would try once more when it exits, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return (answer or _PIPE_CLOSED) if lost else answer


def _flushed(stream: TextIO) -> bool:
    try:
        stream.flush()
    except BrokenPipeError:
        return False
    return True
