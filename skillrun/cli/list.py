"""`skillrun list`: skills, scripts, what they ask for, what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillrun.cli.command import HELP, Verb, emit, emit_bytes, say
from skillrun.cli.inventory import listing
from skillrun.cli.listed import uncollected
from skillrun.cli.setting import Setting, current, output_options, setting_options
from skillrun.cli.terminal import stdout_view
from skillrun.host import current_host
from skillrun.problem import error
from skillrun.report import document, shapes
from skillrun.report.diagnostics import summary
from skillrun.report.listing import lines
from skillrun.roots import look_through, skill_roots
from skillrun.skills.discover import RootStatus

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.problem import Problem
    from skillrun.report.listing import Listing


@click.command(
    "list",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun list\n  skillrun list skills ~/more-skills\n  skillrun list --json | jq '.skills[].key'\n\n"
    "Exit codes: 0 all is well, 1 a listed skill is invalid, 2 a root is missing or holds no skill.",
)
@click.argument("roots", metavar="[ROOT]...", nargs=-1)
@setting_options(running=False)
@output_options
@click.pass_context
def command(ctx: click.Context, roots: tuple[str, ...], setting: Setting, *, as_json: bool) -> int:
    """List skills and their scripts, what each asks for, and everything that is wrong with them."""
    named = tuple(current() / root for root in (*setting.skills, *roots))
    host = current_host()
    with uncollected():
        found = listing(look_through(skill_roots(setting.folder(), host, named), host))
        problems = list(found.all_problems)
        if not found.rows:
            problems.append(_nothing(found, named, setting.folder()))
        if as_json:
            emit_bytes(document.write(shapes.listing(found)))
        elif found.rows:
            view = stdout_view(ctx)
            emit(lines(found, base=view.base, columns=view.columns, style=view.style))
    _report(ctx, problems)
    return _exit_code(found, named)


def _report(ctx: click.Context, problems: list[Problem]) -> None:
    say(ctx, problems)
    total = summary(dict.fromkeys(problems))
    if total:
        click.echo(total, err=True)


def _nothing(found: Listing, named: tuple[Path, ...], folder: Path) -> Problem:
    """Say that there was nothing to list, so that an empty answer never looks like a good one."""
    looked = (
        ", ".join(f"`{one.root}`" for one in found.roots)
        or f"the usual folders of `{folder}` and of your home"
    )
    kind = (
        "name a folder that has skills in it"
        if named
        else "make one with `skillrun init NAME`, or name a root"
    )
    return error("skills-none", f"no skills found in {looked}", help=kind)


def _exit_code(found: Listing, named: tuple[Path, ...]) -> int:
    broken = any(one.status is not RootStatus.OK for one in found.roots)
    if broken or (named and not found.rows):
        return 2
    return 0 if all(row.valid for row in found.rows) else 1
