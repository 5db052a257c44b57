"""`skillrun tools`: the scripts of skills as tools for a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import click

from skillrun.cli.command import HELP, Option, Verb, colour_option, emit, emit_bytes, say
from skillrun.cli.setting import Setting, setting_options
from skillrun.cli.terminal import stdout_view
from skillrun.errors import UsageError
from skillrun.problem import Severity, error
from skillrun.report import document
from skillrun.report.tooling import table, tool_shapes
from skillrun.tools.box import Toolbox
from skillrun.tools.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.tools.tool import Tool

_TABLE: Final = "table"
_JSON: Final = "json"


@click.command(
    "tools",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun tools\n  skillrun tools pdf-tools --format anthropic\n"
    "  skillrun tools --json | jq '.tools[].name'\n\n"
    "Exit codes: 0 all is well, 1 a skill has no tools for an error in it, 2 wrong usage or configuration.",
)
@click.argument("named", metavar="[SKILL]...", nargs=-1)
@setting_options(running=False)
@click.option(
    "--format",
    "kind",
    cls=Option,
    type=click.Choice([_TABLE, _JSON, *FORMATS]),
    default=_TABLE,
    help="How to write them: for people, for programs, or as a model API takes them.  [default: table]",
)
@click.option("--strict-schemas", cls=Option, is_flag=True,
              help="Ask for the provider's strict mode where a schema and its budget allow it.")  # fmt: skip
@click.option("--json", "as_json", cls=Option, is_flag=True, help="Write JSON for programs.")
@colour_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    named: tuple[str, ...],
    setting: Setting,
    kind: str,
    strict_schemas: bool,
    as_json: bool,
) -> int:
    """Show the tools that the scripts of SKILLs make: names, parameters, descriptions. Nothing is run."""
    with setting.runner(ctx.obj) as runner, Toolbox(runner=runner) as box:
        chosen = _chosen(box.tools, named)
        problems = list(box.problems)
        kind = _JSON if as_json else kind
        if kind == _TABLE:
            view = stdout_view(ctx)
            emit(table(chosen, columns=view.columns, style=view.style))
        elif kind == _JSON:
            emit_bytes(document.write(tool_shapes(chosen)))
        else:
            turn = box.turn([one.full_name for one in chosen])
            problems = list(turn.problems)
            definitions = turn.definitions(kind, strict=strict_schemas)
            emit([json.dumps(document.clean(definitions), indent=2, ensure_ascii=True)])
        say(ctx, problems)
        return 1 if any(one.severity is Severity.ERROR for one in problems) else 0


def _chosen(tools: Sequence[Tool], skills: tuple[str, ...]) -> list[Tool]:
    """Return the tools of the skills that were named, all of them when none was."""
    known = {one.namespace for one in tools}
    for skill in skills:
        if skill not in known:
            problem = error(
                "tools-none", f"no tool comes from a skill `{skill}`", help="`skillrun list` shows the skills"
            )
            raise UsageError(problem)
    return [one for one in tools if not skills or one.namespace in skills]
