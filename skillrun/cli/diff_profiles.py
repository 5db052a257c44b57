"""`skillrun diff A.sb B.sb`: what two Seatbelt profiles decide differently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.cli.command import emit, emit_bytes, say
from skillrun.cli.reading import defined, profile_text
from skillrun.cli.terminal import stdout_view
from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.report import document
from skillrun.report.comparing import lines, shape
from skillrun.sandbox.seatbelt.difference import differences
from skillrun.sandbox.seatbelt.parse import parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click

    from skillrun.sandbox.seatbelt.model import Profile

SUFFIX = ".sb"
DIFFERENT = 1


def diff_profiles(ctx: click.Context, base: str, head: str, definitions: Sequence[str], *, form: str) -> int:
    """Compare two profiles and return the exit code."""
    if form == "markdown":
        raise UsageError(
            error(
                "format", "profiles are compared in plain text or JSON", help="leave out `--format markdown`"
            )
        )
    values = defined(definitions)
    before, after = (_parsed(ctx, name, values) for name in (base, head))
    found = tuple(differences(before, after))
    if form == "json":
        emit_bytes(document.write(shape(found, before, after)))
    else:
        emit(lines(found, before, after, stdout_view(ctx)))
    return DIFFERENT if found else 0


def _parsed(ctx: click.Context, name: str, values: Mapping[str, str]) -> Profile:
    path, text = profile_text(name)
    profile = parse(text, values, path=path)
    say(ctx, profile.faults)
    return profile
