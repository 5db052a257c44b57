"""`skillrun diff`: what two Seatbelt profiles decide differently."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillrun.cli.command import HELP, Verb, emit, emit_bytes, say
from skillrun.cli.reading import define, defined, profile_text
from skillrun.cli.setting import output_options
from skillrun.cli.terminal import stdout_view
from skillrun.report import document
from skillrun.report.comparing import lines, shape
from skillrun.sandbox.seatbelt.difference import differences
from skillrun.sandbox.seatbelt.parse import parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillrun.sandbox.seatbelt.model import Profile

DIFFERENT = 1


@click.command(
    "diff",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun diff old.sb new.sb\n  skillrun diff -D HOME=/Users/ann old.sb new.sb --json\n\n"
    "Exit codes: 0 no difference found, 1 differences, 2 wrong usage.",
)
@click.argument("base", metavar="A.sb")
@click.argument("head", metavar="B.sb")
@define
@output_options
@click.pass_context
def command(ctx: click.Context, *, base: str, head: str, definitions: tuple[str, ...], as_json: bool) -> int:
    """Ask both profiles about everything that either names, and show what they answer differently."""
    return diff_profiles(ctx, base, head, definitions, as_json=as_json)


def diff_profiles(
    ctx: click.Context, base: str, head: str, definitions: Sequence[str], *, as_json: bool
) -> int:
    """Compare two profiles and return the exit code."""
    values = defined(definitions)
    before, after = (_parsed(ctx, name, values) for name in (base, head))
    found = tuple(differences(before, after))
    if as_json:
        emit_bytes(document.write(shape(found, before, after)))
    else:
        emit(lines(found, before, after, stdout_view(ctx)))
    return DIFFERENT if found else 0


def _parsed(ctx: click.Context, name: str, values: Mapping[str, str]) -> Profile:
    path, text = profile_text(name)
    profile = parse(text, values, path=path)
    say(ctx, profile.faults)
    return profile
