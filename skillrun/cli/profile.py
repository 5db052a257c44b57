"""`skillrun profile`: what enforces a skill's permissions, written in the language of a backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from skillrun.cli.command import HELP, Verb, emit_bytes
from skillrun.cli.inventory import first_script
from skillrun.cli.setting import (
    Setting,
    flag_options,
    named_skill,
    output_options,
    setting_options,
    values_of_network,
)
from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.report import document, shapes
from skillrun.sandbox.choose import BACKENDS
from skillrun.sandbox.foresee import foresee

if TYPE_CHECKING:
    from skillrun.permissions.flags import Flags

_SHOWN: Final = tuple(backend.name for backend in BACKENDS if backend.name != "passthrough")


class Profile(Verb):
    """`profile`, with a `--network` that may go without a value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command line."""
        return super().parse_args(ctx, values_of_network(args))


@click.command(
    "profile",
    cls=Profile,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun profile pdf-tools --backend seatbelt > pdf-tools.sb\n"
    "  skillrun profile pdf-tools extract.py --backend linux\n\n"
    "Exit codes: 0 written, 2 wrong usage or configuration.",
)
@click.argument("skill")
@click.argument("script", required=False)
@setting_options(running=True)
@flag_options
@output_options
@click.pass_context
def command(
    ctx: click.Context, *, skill: str, script: str | None, setting: Setting, flags: Flags, as_json: bool
) -> int:
    """Write what would enforce the permissions of a script of SKILL, on any platform.

    A Seatbelt profile has its parameters in front, as comments; the scratch folder has another name in each run.
    """
    with setting.runner(ctx.obj) as runner:
        found = runner.find(named_skill(skill, runner))
        preview = runner.preview(found, script or first_script(found), flags=flags)
        probe = preview.chosen.probe
        name = setting.backend or ("seatbelt" if probe.platform == "darwin" else "linux")
        backend = next((one for one in BACKENDS if one.name == name and name in _SHOWN), None)
        if backend is None:
            known = ", ".join(f"`{one}`" for one in _SHOWN)
            raise UsageError(
                error("backend-unknown", f"there is no backend `{name}`", help=f"there are {known}")
            )
        policy = preview.ready.policy
        landscape = foresee(policy, dict(preview.ready.grant.missing), split=backend.splits(probe))
        text = backend.render(policy, landscape, probe)
    if as_json:
        shape = {**shapes.schema("profile"), "backend": name, "text": text, "policy": shapes.policy(policy)}
        emit_bytes(document.write(shape))
    else:
        emit_bytes(text.encode("utf-8", "backslashreplace"))
    return 0
