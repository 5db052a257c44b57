"""Command: what all commands share: grouped help, errors told in one way, colour."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING, Any, ClassVar, Final

import click

from skillrun.errors import SkillrunError
from skillrun.problem import error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillrun.problem import Problem

HELP: Final = {"help_option_names": ["-h", "--help"]}
SECTIONS: Final = ("Input", "Permissions for this run", "Sandbox", "Output")


class Option(click.Option):
    """An option that says in which part of the help it stands."""

    def __init__(self, *names: Any, section: str = "Output", **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.section = section


class Verb(click.Command):
    """One command. `usage_exit` is its exit code when it is called wrongly."""

    usage_exit: ClassVar[int] = 2

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by what they are for."""
        rows: dict[str, list[tuple[str, str]]] = {section: [] for section in SECTIONS}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if row is not None:
                rows[getattr(parameter, "section", "Output")].append(row)
        for section, found in rows.items():
            if found:
                with formatter.section(section):
                    formatter.write_dl(found)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; whatever goes wrong becomes a message and an exit code."""
        try:
            return super().invoke(ctx)
        except SkillrunError as wrong:
            return self.fail(ctx, wrong.problems)

    def fail(self, ctx: click.Context, problems: Sequence[Problem]) -> int:
        """Say what is wrong and return the exit code."""
        say(ctx, problems)
        return self.usage_exit


def say(ctx: click.Context, problems: Sequence[Problem]) -> None:
    """Write problems to standard error."""
    from skillrun.cli.terminal import stderr_view  # noqa: PLC0415 - needed only when something is wrong
    from skillrun.report.diagnostics import plain  # noqa: PLC0415 - needed only when something is wrong

    view = stderr_view(ctx)
    for problem in dict.fromkeys(problems):
        text = plain(problem, base=view.base, style=view.style, columns=view.columns)
        click.echo(text, err=True, color=True)  # the style has decided already


def internal(bug: BaseException) -> Problem:
    """Turn an exception that nobody expected into a problem; the traceback only for who asks for it."""
    if os.environ.get("SKILLRUN_DEBUG") == "1":
        traceback.print_exception(bug)
    return error(
        "internal",
        f"{type(bug).__name__}: {bug}; this is a bug in skillrun",
        help="please report it with the command you ran; SKILLRUN_DEBUG=1 shows where it happened",
    )


def report_usage(wrong: click.ClickException, *, default: int) -> int:
    """Say what is wrong with a call and what to do, and return the exit code."""
    context = getattr(wrong, "ctx", None)
    if type(wrong).__name__ == "NoArgsIsHelpError" and context is not None:
        click.echo(context.get_help(), err=True)
        return default
    message, _, advice = wrong.message.partition("\n")
    if isinstance(wrong, click.MissingParameter | click.BadParameter):
        message = wrong.format_message()
    elif isinstance(wrong, click.NoSuchOption):
        message = f"there is no option `{wrong.option_name}`"
        advice = f"did you mean `{wrong.possibilities[0]}`?" if wrong.possibilities else ""
    path = context.command_path if context is not None else "skillrun"
    problem = error("usage", _phrase(message), help=advice or f"`{path} --help` shows how it is called")
    say(context or click.Context(click.Command("skillrun")), (problem,))
    command = context.command if context is not None else None
    return command.usage_exit if isinstance(command, Verb) else default


def _phrase(message: str) -> str:
    """Bring click's sentences into the form of all others: a lower-case phrase without a full stop, backticks."""
    message = message.rstrip(".").replace("'", "`").replace('"', "`")
    return message[:1].lower() + message[1:]


def colour_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--color`."""
    return click.option(
        "--color",
        cls=Option,
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        is_eager=True,
        callback=_set_colour,
        help="Colour in messages and output.  [default: auto; NO_COLOR and FORCE_COLOR count]",
    )(function)


def verbose_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--verbose`, which lets the library's logger speak on standard error."""
    return click.option(
        "--verbose",
        cls=Option,
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_listen,
        help="Tell every step on standard error, without arguments and secrets.",
    )(function)


def _listen(_ctx: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    if not value:
        return
    import logging  # noqa: PLC0415 - a tenth of a command's start, for who asks

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("skillrun: %(relativeCreated)d ms: %(message)s"))
    logger = logging.getLogger("skillrun")
    logger.handlers = [handler]
    logger.setLevel(logging.DEBUG)
    logger.propagate = False


def _set_colour(ctx: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value in {"always", "never"}:
        ctx.color = value == "always"


def emit(lines: Iterable[str]) -> None:
    """Write lines of data to standard output, all at once."""
    click.echo("\n".join(lines), color=True)  # the style has decided already


def emit_bytes(data: bytes) -> None:
    """Write a document to standard output, UTF-8 whatever the locale says."""
    click.echo(data, nl=False)
