"""`skillrun show`: one skill for a person, from what it asks for to what is enforced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillrun.cli.command import HELP, Option, Verb, emit, emit_bytes, say
from skillrun.cli.inventory import first_script, row
from skillrun.cli.logbook import NAME, log_option, place
from skillrun.cli.setting import (
    Setting,
    current,
    flag_options,
    named_skill,
    output_options,
    setting_options,
    values_of_network,
)
from skillrun.cli.terminal import stdout_view
from skillrun.errors import SkillError
from skillrun.host import current_host
from skillrun.permissions.voices import listen
from skillrun.problem import error
from skillrun.report import document, shapes
from skillrun.report.listing import entry
from skillrun.report.records import last as latest
from skillrun.report.remembering import remembered
from skillrun.report.showing import Chain, lines
from skillrun.report.tooling import tool_shape
from skillrun.skills.digest import digest
from skillrun.tools.script_tool import tools_of

if TYPE_CHECKING:
    from skillrun.launch.ready import Preview
    from skillrun.permissions.flags import Flags
    from skillrun.report.listing import Row
    from skillrun.runner import Runner


class Show(Verb):
    """`show`, with a `--network` that may go without a value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command line."""
        return super().parse_args(ctx, values_of_network(args))


@click.command(
    "show",
    cls=Show,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun show pdf-tools\n  skillrun show skills/pdf-tools extract.py --read ~/Documents\n"
    "  skillrun show --ceiling reader pdf-tools --json\n\n"
    "Exit codes: 0 shown, 1 the skill is invalid or can't be started here, 2 wrong usage or configuration.",
)
@click.argument("skill", required=False)
@click.argument("script", required=False)
@setting_options(running=True)
@click.option(
    "--strict", cls=Option, section="Sandbox", is_flag=True, help="Say whether `run --strict` would refuse."
)
@click.option(
    "--last", cls=Option, is_flag=True, help="Show the latest run that --log has written down instead."
)
@log_option
@flag_options
@output_options
@click.pass_context
def command(
    ctx: click.Context,
    *,
    skill: str | None,
    script: str | None,
    setting: Setting,
    flags: Flags,
    strict: bool,
    last: bool,
    log: str | None,
    as_json: bool,
) -> int:
    """Show what SKILL asks for, what limits it, what is granted, and what enforces it here.

    SKILL is a key or a folder. SCRIPT may be left out when there is one. With --last, SKILL is the key of
    a skill whose latest run is shown, and may be left out.
    """
    if last:
        return _show_last(ctx, skill, log or NAME, as_json=as_json)
    if skill is None or log is not None:
        raise click.UsageError(
            "name a SKILL to show, or say --last" if skill is None else "--log goes with --last"
        )
    with setting.runner(ctx.obj) as runner:
        found = runner.find(named_skill(skill, runner))
        line = row(found)
        try:
            preview = _preview(runner, line, script, flags, strict=strict)
        except SkillError as wrong:
            _write(ctx, line, None, runner, as_json=as_json)
            say(ctx, (*wrong.problems, *line.problems))
            return 1
        _write(ctx, line, preview, runner, as_json=as_json)
        say(ctx, (*line.problems, *(preview.ready.policy.warnings if preview else ())))
        if preview is not None and preview.refusal is not None:
            say(ctx, (preview.refusal,))
        return 0


def _show_last(ctx: click.Context, skill: str | None, log: str, *, as_json: bool) -> int:
    """Show the latest record, of one skill if its key is given."""
    path = place(log, current_host(), current())
    found = latest(path, skill=skill)
    if found is None:
        of = f" of `{skill}`" if skill is not None else ""
        say(
            ctx,
            (
                error(
                    "no-record",
                    f"there is no run{of} in `{path}`",
                    help="`skillrun run --log` writes them down",
                ),
            ),
        )
        return 1
    if as_json:
        emit_bytes(document.write(found))
    else:
        emit(remembered(found))
    return 0


def _preview(runner: Runner, line: Row, script: str | None, flags: Flags, *, strict: bool) -> Preview | None:
    """Preview a run; None for a skill that has no script, which is no fault of it."""
    if script is None and line.valid and not line.skill.scripts:
        return None
    script = script or first_script(line.skill)
    return runner.preview(line.skill, script, strict=strict, flags=flags)


def _write(ctx: click.Context, line: Row, preview: Preview | None, runner: Runner, *, as_json: bool) -> None:
    if as_json:
        emit_bytes(document.write(_shape(line, preview, runner)))
        return
    view = stdout_view(ctx)
    text = list(entry(line, base=view.base, columns=view.columns, style=view.style))
    if preview is not None:
        text += ["", *lines(_chain(preview, runner), view)]
    emit(text)


def _chain(preview: Preview, runner: Runner) -> Chain:
    ready, chosen = preview.ready, preview.chosen
    voice = listen(ready.skill, runner.layers, ready.digest)
    return Chain(
        script=ready.subject.script.name,
        interpreter=ready.subject.interpreter,
        digest=ready.digest,
        grant=ready.grant,
        policy=ready.policy,
        ceiling=runner.layers.describe(),
        backend=None if chosen.backend is None else chosen.backend.name,
        guarantees=preview.guarantees,
        own=None if voice.request is voice.own else voice.own,
    )


def _shape(line: Row, preview: Preview | None, runner: Runner) -> shapes.Shape:
    """Shape it as `show/1`: the skill of `list/1` and what a run would have."""
    ready = None if preview is None else preview.ready
    return {
        **shapes.schema("show"),
        **shapes.skill(line),
        "digest": ready.digest if ready is not None else digest(line.skill.path),
        "grant": None if ready is None else shapes.grant(ready.grant),
        "policy": None if ready is None else shapes.policy(ready.policy),
        "guarantees": None if preview is None else shapes.guarantees(preview.guarantees),
        "refusal": None if preview is None or preview.refusal is None else shapes.problem(preview.refusal),
        "tools": [tool_shape(tool) for tool in tools_of(runner, [line.skill])[0]],
    }
