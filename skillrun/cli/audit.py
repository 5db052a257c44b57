"""`skillrun audit`: what is wrong with Seatbelt profiles, skillrun's own or anybody's, on any platform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from skillrun.check.profile.audit import assumed, audit
from skillrun.cli.command import HELP, Option, Verb, colour_option, emit, emit_bytes, say
from skillrun.cli.limits import limits_of
from skillrun.cli.reading import define, defined, profile_text
from skillrun.cli.terminal import stdout_view
from skillrun.errors import UsageError
from skillrun.problem import error, note
from skillrun.report import document
from skillrun.report.auditing import Audited, concise_lines, lines, shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillrun.check.profile.finding import Limits

FOUND: Final = 1
NOTHING: Final = 3


@click.command(
    "audit",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun audit sandbox.sb\n  skillrun audit -D HOME=/Users/ann --format concise *.sb\n"
    "  skillrun audit --ceiling reader sandbox.sb\n\n"
    "Exit codes: 0 nothing found, 1 findings, 2 wrong usage, 3 nothing was audited.",
)
@click.argument("files", metavar="FILE.sb...", nargs=-1)
@define
@click.option("--ceiling", cls=Option, section="Input", metavar="FILE|PRESET",
              help="Also find what a profile allows beyond this ceiling.")  # fmt: skip
@click.option("--workspace", cls=Option, section="Input", metavar="DIR",
              help="What `${workspace}` of the ceiling is.  [default: the current folder]")  # fmt: skip
@click.option("--format", "form", cls=Option, type=click.Choice(["plain", "concise", "json"]), default="plain",
              help="How findings are written.  [default: plain]")  # fmt: skip
@click.option("--json", "as_json", cls=Option, is_flag=True, help="The same as --format json.")
@colour_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    files: tuple[str, ...],
    definitions: tuple[str, ...],
    ceiling: str | None,
    workspace: str | None,
    form: str,
    as_json: bool,
) -> int:
    """Say what is wrong with Seatbelt profiles, and for each finding the smallest safe change.

    A parameter without a value is taken as set, and told.
    """
    if not files:
        say(ctx, (error("nothing-audited", "no profile was named", help="write `skillrun audit FILE.sb`"),))
        return NOTHING
    limits = None if ceiling is None else limits_of(ceiling, workspace)
    values = defined(definitions)
    audited = [one for name in files if (one := _audited(ctx, name, values, limits)) is not None]
    view = stdout_view(ctx)
    if as_json or form == "json":
        emit_bytes(document.write(shape(audited)))
    elif form == "concise":
        emit(concise_lines(audited, view))
    elif audited:
        emit(lines(audited, view))
    if len(audited) < len(files):
        return NOTHING if not audited else Verb.usage_exit
    return FOUND if any(one.findings for one in audited) else 0


def _audited(
    ctx: click.Context, name: str, values: Mapping[str, str], limits: Limits | None
) -> Audited | None:
    """Audit one file; one that can't be read is told, and keeps no other from being audited."""
    try:
        path, text = profile_text(name)
    except UsageError as wrong:
        say(ctx, wrong.problems)
        return None
    profile, made_up = assumed(text, values, path=path)
    if made_up:
        told = ", ".join(f"{key}={value}" for key, value in sorted(made_up.items()))
        message = f"`{name}` has parameters without a value, and was audited with {told}"
        say(ctx, (note("parameters-assumed", message, help="give their values with -D"),))
    return Audited(path, audit(profile, limits=limits), made_up, loads=profile.loads)
