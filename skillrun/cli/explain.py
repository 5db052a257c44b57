"""`skillrun explain`: why a path or a host is allowed or not, from the very grant that a run would get."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click

from skillrun.cli.answers import answer
from skillrun.cli.command import HELP, Option, Verb, emit, emit_bytes
from skillrun.cli.decisions import Inquiry, explain_profile
from skillrun.cli.inventory import first_script
from skillrun.cli.reading import define, defined
from skillrun.cli.setting import Setting, current, named_skill, output_options, setting_options
from skillrun.cli.terminal import stdout_view
from skillrun.permissions.explain import Access, Decision
from skillrun.report import document, shapes
from skillrun.report.explaining import lines

if TYPE_CHECKING:
    from skillrun.permissions.explain import Answer

DENIED: Final = 1
UNKNOWN: Final = 4


@click.command(
    "explain",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun explain pdf-tools --read ~/.ssh/id_ed25519 /etc/hosts\n"
    "  skillrun explain pdf-tools --write out/report.md\n  skillrun explain pdf-tools --connect api.example.com:443\n"
    "  skillrun explain --profile sandbox.sb --operation file-read-data /private/etc/hosts\n\n"
    "Exit codes: 0 all allowed, 1 any denied, 2 wrong usage, 4 unknown.",
)
@click.argument("skill", required=False)
@click.argument("targets", metavar="TARGET...", nargs=-1)
@click.option(
    "--read", "access", cls=Option, section="Input", flag_value="read", help="May it read each TARGET?"
)
@click.option(
    "--write", "access", cls=Option, section="Input", flag_value="write", help="May it write each TARGET?"
)
@click.option(
    "--connect", "access", cls=Option, section="Input", flag_value="connect",
    help="May it connect to each TARGET, a host or host:port?",
)  # fmt: skip
@click.option(
    "--script", cls=Option, section="Input", help="The script that is asked about.  [default: the first]"
)
@click.option(
    "--profile",
    cls=Option,
    section="Input",
    metavar="FILE.sb",
    help="Ask this Seatbelt profile instead of a SKILL.",
)
@define
@click.option(
    "--operation",
    cls=Option,
    section="Input",
    metavar="OP",
    help="The operation that a profile is asked about, such as file-write-create.",
)
@click.option(
    "--given", cls=Option, section="Input", multiple=True, metavar="NAME=VALUE",
    help="What only a kernel knows of a TARGET: vnode-type, file-mode, extension, namespace.",
)  # fmt: skip
@setting_options(running=True)
@output_options
@click.pass_context
def command(
    ctx: click.Context,
    *,
    skill: str | None,
    targets: tuple[str, ...],
    access: str | None,
    script: str | None,
    profile: str | None,
    definitions: tuple[str, ...],
    operation: str | None,
    given: tuple[str, ...],
    setting: Setting,
    as_json: bool,
) -> int:
    """Say for each TARGET whether a script of SKILL may use it, and what decides that.

    Paths are taken from the current folder, as they are typed. With --profile they are taken as a kernel
    asks about them: physical, and as they stand.
    """
    if profile is not None:
        asked = (*filter(None, (skill,)), *targets)
        return explain_profile(
            ctx, Inquiry(profile, defined(definitions), operation, given), asked, as_json=as_json
        )
    if skill is None or not targets:
        raise click.UsageError("a SKILL and a TARGET are needed", ctx=ctx)
    if access is None:
        raise click.UsageError(
            "what is asked about is missing\nwrite `--read`, `--write` or `--connect`", ctx=ctx
        )
    kind = Access(access)
    with setting.runner(ctx.obj) as runner:
        found = runner.find(named_skill(skill, runner))
        texts = targets if kind is Access.CONNECT else tuple(_from_here(target) for target in targets)
        preview = runner.preview(found, script or first_script(found))
        answers = answer(preview, kind, texts)
    if as_json:
        emit_bytes(document.write(shapes.explanation(answers)))
    else:
        emit(lines(answers, stdout_view(ctx)))
    return exit_code(answers)


def exit_code(answers: tuple[Answer, ...]) -> int:
    """Return the exit code: one denial outweighs what nobody knows."""
    decisions = {answer.decision for answer in answers}
    if Decision.DENIED in decisions:
        return DENIED
    return UNKNOWN if Decision.UNKNOWN in decisions else 0


def _from_here(target: str) -> str:
    return os.path.join(current(), target)  # noqa: PTH118 - the text stays as typed: `a/../b` may cross a link
