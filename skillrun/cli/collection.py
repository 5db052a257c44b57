"""Collection: what the commands about a whole collection of skills (`check`, `lock`, `diff`) take in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillrun.check.session import Session
from skillrun.cli.command import Option
from skillrun.cli.setting import current
from skillrun.host import current_host

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.cli.setting import Setting

ceiling_option = click.option(
    "--ceiling",
    cls=Option,
    section="Input",
    metavar="FILE|PRESET",
    help="The most a skill may have.  [default: `default`; your own skillrun.yaml does not count here]",
)


def session_of(setting: Setting, roots: Sequence[str] = ()) -> Session:
    """Make the session of a command: its folder, the roots named in either way, and the ceiling."""
    return Session(
        folder=setting.folder().resolve(),
        roots=tuple(current() / root for root in (*setting.skills, *roots)),
        ceiling=setting.named_ceiling(),
        host=current_host(),
    )
