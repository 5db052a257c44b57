"""`skillrun doctor`: what this machine can enforce, tried out, and what helps where it can't."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillrun.cli.command import HELP, Option, Verb, emit, emit_bytes
from skillrun.cli.probes import try_everything
from skillrun.cli.setting import output_options
from skillrun.cli.terminal import stdout_view
from skillrun.host import current_host
from skillrun.launch.facts import host_facts
from skillrun.report import document
from skillrun.report.health import Health, lines, shape
from skillrun.sandbox.linux.limits import limits_of
from skillrun.sandbox.linux.remedies import remedies

if TYPE_CHECKING:
    from skillrun.cli.probes import Tried


@click.command(
    "doctor",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun doctor\n  skillrun doctor --json | jq .guarantees\n\n"
    "Exit codes: 0 scripts are confined here, 1 they can't be.",
)
@click.option(
    "--backend",
    cls=Option,
    section="Sandbox",
    metavar="NAME",
    help="The backend to look at.  [default: this platform's]",
)
@output_options
@click.pass_context
def command(ctx: click.Context, *, backend: str | None, as_json: bool) -> int:
    """Find out what this machine can enforce: each promise is attacked by a small script, and judged from outside."""
    health = examine(try_everything(current_host(), backend, ctx.obj))
    if as_json:
        emit_bytes(document.write(shape(health)))
    else:
        emit(lines(health, stdout_view(ctx)))
    return 0 if health.confined else 1


def examine(tried: Tried) -> Health:
    """Put together what the probes found."""
    first = tried.first
    on_linux = tried.probe is not None and tried.probe.platform == "linux"
    told = list(remedies(tried.probe, host_facts())) if tried.probe is not None and on_linux else []
    if not told and first is not None and first.error is not None and first.error.help is not None:
        told = [first.error.help]
    return Health(
        platform=sys.platform,
        backend=None if first is None else first.backend,
        level=None if first is None else first.level,
        guarantees=None if first is None else first.guarantees,
        trials=tried.trials,
        remedies=tuple(told),
        limits=limits_of(None if first is None else first.level),
    )
