"""`skillrun deny`: a person's no to one call."""

from __future__ import annotations

import click

from skillrun.cli import person, stored
from skillrun.cli.command import HELP, Option, Verb, colour_option
from skillrun.conversation.entry import State


@click.command(
    "deny",
    cls=Verb,
    context_settings=HELP,
    epilog='\b\nExample:\n  skillrun deny release 2.0 --reason "not on a Friday"\n\n'
    "Exit codes: 0 denied, 1 nothing was changed, 2 the call does not wait for this, has changed, or wrong usage.",
)
@click.argument("conversation")
@click.argument("call")
@click.option(
    "--reason", cls=Option, section="Input", metavar="TEXT", default="", help="Why; the model reads it."
)
@person.person_options
@stored.store_option
@colour_option
@click.pass_context
def command(
    ctx: click.Context, *, conversation: str, call: str, reason: str, yes: bool, ceiling: str | None, store: str | None
) -> int:  # fmt: skip
    """Say no to one CALL of CONVERSATION. It is not made, and the model reads that a person said no."""
    whose = person.voice(yes=yes, ceiling=ceiling)
    with stored.existing(store) as kept:
        desk = person.desk_of(kept, conversation, whose)
        entry = person.found(desk, call, State.AWAITING_APPROVAL)
        if not person.agreed(ctx, entry, whose, "say no to this call?"):
            return person.UNCHANGED
        desk.deny(call, digest=entry.digest, reason=reason)
    click.echo(f"denied {call}", err=True)
    return 0
