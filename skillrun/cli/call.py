"""`skillrun call`: call one tool, and read what a model would read."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from skillrun.cli.command import HELP, Option, Verb, emit_bytes, say
from skillrun.cli.setting import (
    Setting,
    current,
    flag_options,
    output_options,
    setting_options,
    values_of_network,
)
from skillrun.cli.teller import Teller
from skillrun.errors import SkillrunError, UsageError
from skillrun.problem import error
from skillrun.report import document
from skillrun.report.escape import sentence
from skillrun.report.tooling import call_shape
from skillrun.tools.box import Toolbox, Turn
from skillrun.tools.script_tool import ScriptTool

if TYPE_CHECKING:
    from skillrun.permissions.flags import Flags
    from skillrun.tools.events import Progress
    from skillrun.tools.outcome import Outcome, ToolCall


class Call(Verb):
    """`call`, with a `--network` that may go without a value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command line."""
        return super().parse_args(ctx, values_of_network(args))


@click.command(
    "call",
    cls=Call,
    context_settings=HELP,
    epilog='\b\nExamples:\n  skillrun call pdf-tools__extract --args \'{"file": "in.pdf"}\'\n'
    "  skillrun call pdf-tools__extract --args @call.json --json\n\n"
    "Exit codes: 0 a result, 1 the result is an error, 2 there is no such tool, or wrong usage or configuration.",
)
@click.argument("tool")
@click.option(
    "--args",
    "given",
    cls=Option,
    section="Input",
    metavar="JSON|@FILE|-",
    help="The arguments as a JSON object, in a file, or on standard input.  [default: none]",
)
@setting_options(running=True)
@flag_options
@output_options
@click.pass_context
def command(
    ctx: click.Context, *, tool: str, given: str | None, setting: Setting, flags: Flags, as_json: bool
) -> int:
    """Call TOOL, a name that `skillrun tools` shows, and write the text that a model would get.

    Who types the call agrees to it: `approval` is not asked for.
    """
    arguments = _arguments(given)
    teller = Teller(ctx)

    def progress(_: ToolCall, said: Progress) -> None:
        teller.line(sentence(said.message))

    with (
        setting.runner(ctx.obj) as runner,
        # A long result is written whole: a file of it would be gone before anybody could read it.
        Toolbox(runner=runner, approve=lambda *_: True, on_progress=[progress], spill=False) as box,
    ):
        if all(one.full_name != tool for one in box.tools):
            say(ctx, box.problems)
        for one in box.tools:
            if isinstance(one, ScriptTool):
                one.flags, one.on_plan = flags, teller.before
        outcome = Turn(box, box.tools).call(tool, arguments)
        _write(outcome, as_json=as_json)
        _tell(ctx, teller, outcome)
        known = any(one.full_name == tool for one in box.tools)
        return 2 if not known else int(outcome.is_error)


def _write(outcome: Outcome, *, as_json: bool) -> None:
    if as_json:
        emit_bytes(document.write(call_shape(outcome)))
    else:
        emit_bytes(outcome.text.encode("utf-8", "replace") + b"\n")


def _tell(ctx: click.Context, teller: Teller, outcome: Outcome) -> None:
    """Tell the operator what the model is not told."""
    if outcome.result is not None:
        teller.after(outcome.result)
    if isinstance(outcome.error, SkillrunError):
        say(ctx, outcome.error.problems)


def _arguments(given: str | None) -> Any:
    """Read the arguments. Raises UsageError for what is no JSON."""
    if given is None:
        return {}
    text = given
    if given == "-":
        text = sys.stdin.read() if sys.stdin is not None else ""
    elif given.startswith("@"):
        try:
            text = (current() / given[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as wrong:
            reason = getattr(wrong, "strerror", None) or "it is not UTF-8"
            raise UsageError(
                error("call-arguments", f"`{given[1:]}` can't be read for arguments: {reason}")
            ) from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        message = f"the arguments are no JSON: {wrong}"
        advice = 'write an object in quotes: --args \'{"name": "value"}\', or @FILE'
        raise UsageError(error("call-arguments", message, help=advice)) from None
