"""`skillrun run`: run a script of a skill, confined, as if it had been started itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar, Final

import click

from skillrun.cli.command import HELP, Option, Verb, emit_bytes, say
from skillrun.cli.interrupts import Stopped
from skillrun.cli.logbook import log_option, records
from skillrun.cli.outlet import Outlet
from skillrun.cli.setting import (
    Setting,
    current,
    flag_options,
    named_skill,
    output_options,
    setting_options,
    values_of_network,
)
from skillrun.cli.teller import Teller
from skillrun.errors import SkillrunError, UsageError
from skillrun.host import current_host
from skillrun.launch.denials import failed
from skillrun.launch.result import Result, Termination
from skillrun.problem import error
from skillrun.report import document
from skillrun.report.receipt import no_result, receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillrun.launch.ready import Ready
    from skillrun.permissions.flags import Flags
    from skillrun.problem import Problem
    from skillrun.runner import Runner
    from skillrun.sandbox.backend import LaunchPlan

TIMED_OUT, NOT_STARTED, CANNOT_EXECUTE, NO_INTERPRETER = 124, 125, 126, 127
KILLED: Final = 128 + 9
_OVERHEARD: Final = 32_768  # bytes of standard error in which a reason for a failure is looked for
EXIT_OF_RULE: Final = {
    "not-executable": CANNOT_EXECUTE,
    "interpreter-not-executable": CANNOT_EXECUTE,
    "interpreter-is-script": CANNOT_EXECUTE,
    "script-interpreter-line": CANNOT_EXECUTE,
    "script-no-interpreter": CANNOT_EXECUTE,
    "script-empty": CANNOT_EXECUTE,
    "interpreter-not-found": NO_INTERPRETER,
}
"""Why nothing was started, as `env` and every shell say it; any other reason is 125."""


class Run(Verb):
    """`run`: everything behind `--` is the script's, and a wrong call is 125: nothing was started."""

    usage_exit: ClassVar[int] = NOT_STARTED

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Part the words at `--`."""
        ctx.meta["words"] = tuple(args)
        cut = args.index("--") if "--" in args else len(args)
        ctx.meta["arguments"] = tuple(args[cut + 1 :])
        return super().parse_args(ctx, values_of_network(args[:cut]))


@click.command(
    "run",
    cls=Run,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun run pdf-tools extract.py -- in.pdf --pages 1-3\n"
    "  skillrun run skills/deploy-checker --write out --timeout 20 -- --env staging\n"
    "  skillrun run --json --stdin in.txt word-count | jq .termination\n\n"
    "Exit codes: the script's own; 124 timed out, 125 nothing was started, 126 it can't be executed, "
    "127 its interpreter was not found, 128+n killed by signal n.",
)
@click.argument("skill")
@click.argument("script", required=False)
@click.argument("surplus", nargs=-1, metavar="[-- ARGS...]", type=click.UNPROCESSED)
@setting_options(running=True)
@click.option(
    "--strict",
    cls=Option,
    section="Sandbox",
    is_flag=True,
    help="Refuse to run when anything asked for was cut.",
)
@click.option(
    "--locked",
    cls=Option,
    section="Sandbox",
    is_flag=True,
    help="Refuse to run when skillrun.lock has not approved exactly this.",
)
@flag_options
@click.option("--no-argument-grants", cls=Option, section="Permissions for this run", is_flag=True,
              help="Don't let it read the files that ARGS name.")  # fmt: skip
@click.option(
    "--stdin", cls=Option, section="Input", metavar="FILE|-", help="Its standard input.  [default: empty]"
)
@click.option("--trace-denials", cls=Option, section="Output", is_flag=True,
              help="Have the kernel tell what the script asks for, to say what was denied; slower.")  # fmt: skip
@log_option
@output_options
@click.pass_context
def command(
    ctx: click.Context,
    *,
    skill: str,
    script: str | None,
    surplus: tuple[str, ...],
    setting: Setting,
    flags: Flags,
    stdin: str | None,
    strict: bool,
    locked: bool,
    no_argument_grants: bool,
    trace_denials: bool,
    log: str | None,
    as_json: bool,
) -> int:
    """Run a script of SKILL confined to what it asked for and you allow.

    SKILL is a key or a folder. SCRIPT may be left out when there is one. What stands behind `--` are
    the script's arguments; files among them that lie where it may read at most are granted for reading.
    """
    arguments: tuple[str, ...] = ctx.meta["arguments"]
    teller = Teller(ctx)
    try:
        if surplus:
            raise _surplus(surplus)
        data = _read_stdin(stdin)
        written = records(log, current_host(), current())
        with setting.runner(ctx.obj, recorder=written) as runner:
            result = runner.run(
                named_skill(skill, runner),
                script,
                arguments,
                stdin=data,
                strict=strict,
                flags=flags,
                typed=not no_argument_grants,
                trace=trace_denials,
                sinks=None if as_json else (Outlet(1, ctx.obj), Outlet(2, ctx.obj, overheard=_OVERHEARD)),
                on_plan=_held(runner, teller) if locked else teller.before,
            )
            code = exit_code(result)
            teller.after(result)
            teller.warn(written.problems if written is not None else ())
            if as_json:
                emit_bytes(document.write(receipt(result)))
            elif failed(result):
                teller.advise(runner, result, arguments)
            return code
    except SkillrunError as wrong:
        problems = _pointed(wrong.problems, ctx)
        say(ctx, problems)
        if as_json:
            emit_bytes(document.write(no_result(Termination.REFUSED, problems, arguments)))
        return EXIT_OF_RULE.get(wrong.problem.rule, NOT_STARTED)
    except Stopped as stopped:
        problem = error("stopped", f"stopped by {stopped.reason}, and everything it had started was ended")
        say(ctx, (problem,))
        if as_json:
            emit_bytes(document.write(no_result(Termination.CANCELLED, (problem,), arguments)))
        return stopped.exit_code


def _held(runner: Runner, teller: Teller) -> Callable[[Ready, LaunchPlan], None]:
    """Look at the lock when everything is known and nothing has started: what is compared is what would run."""
    from skillrun.check.held import hold_to_lock  # noqa: PLC0415 - a plain run does without the rules

    def before(ready: Ready, plan: LaunchPlan) -> None:
        hold_to_lock(ready.skill, runner.layers, ready.digest, runner.host)
        teller.before(ready, plan)

    return before


def exit_code(result: Result) -> int:
    """Return the exit code of a run (DESIGN 11)."""
    match result.termination:
        case Termination.EXITED:
            return result.exit_code or 0
        case Termination.TIMED_OUT:
            return TIMED_OUT
        case Termination.REFUSED | Termination.FAILED_TO_START:
            return NOT_STARTED if result.error is None else EXIT_OF_RULE.get(result.error.rule, NOT_STARTED)
        case _:
            # Out of memory, or the launcher died: it was killed, and 125 would say that it never ran.
            return 128 + result.signal if result.signal is not None else KILLED


def _read_stdin(named: str | None) -> bytes:
    """Read what the script gets as its standard input: a file, ours for `-`, else nothing."""
    if named is None:
        return b""
    if named == "-":
        return sys.stdin.buffer.read() if sys.stdin is not None else b""
    try:
        return (current() / named).read_bytes()
    except OSError as wrong:
        reason = wrong.strerror or "unknown reason"
        raise UsageError(
            error("stdin-unreadable", f"`{named}` can't be read for standard input: {reason}")
        ) from None


def _surplus(words: Sequence[str]) -> UsageError:
    return UsageError(
        error(
            "usage",
            f"`{words[0]}` is one word too many",
            help="arguments for the script stand behind `--`: `skillrun run SKILL SCRIPT -- ARGS`",
        )
    )


def _pointed(problems: Sequence[Problem], ctx: click.Context) -> tuple[Problem, ...]:
    """Say where arguments go when an argument was taken for a script's name."""
    first = problems[0]
    if first.rule != "script-unknown" or "--" in ctx.meta["words"]:
        return tuple(problems)
    more = "an argument of the script stands behind `--`"
    pointed = error(
        first.rule, first.message, at=first.at, help=f"{first.help}; {more}" if first.help else more
    )
    return (pointed, *problems[1:])
