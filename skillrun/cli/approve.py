"""`skillrun approve`: a person's yes to one call, exactly as it was shown."""

from __future__ import annotations

import click

from skillrun.cli import person, stored
from skillrun.cli.command import HELP, Option, Verb, colour_option
from skillrun.conversation.entry import State
from skillrun.errors import UsageError
from skillrun.problem import error


@click.command(
    "approve",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun approve release 2.0\n  skillrun approve release 2.0 --digest sha256:… --yes\n\n"
    "Exit codes: 0 agreed to, 1 you did not agree, 2 the call does not wait for this, has changed, or wrong usage.",
)
@click.argument("conversation")
@click.argument("call")
@click.option("--digest", cls=Option, section="Input", metavar="D",
              help="What you have looked at, as `pending` shows it; a call that is something else by now is refused.")  # fmt: skip
@person.person_options
@stored.store_option
@colour_option
@click.pass_context
def command(
    ctx: click.Context, *, conversation: str, call: str, digest: str | None, yes: bool, ceiling: str | None, store: str | None
) -> int:  # fmt: skip
    """Agree to one CALL of CONVERSATION, as it is shown and no other.

    The call is shown whole, and you are asked. It is made by whoever carries the conversation on, once, and only if
    its tool, version, arguments and rights are still the same.
    """
    whose = person.voice(yes=yes, ceiling=ceiling)
    with stored.existing(store) as kept:
        desk = person.desk_of(kept, conversation, whose)
        entry = person.found(desk, call, State.AWAITING_APPROVAL)
        if digest is not None and digest != entry.digest:
            message = f"the call {call} is not what was looked at: its digest is {entry.digest or 'none'}"
            raise UsageError(error("call-changed", message, help="look at it again: `skillrun pending`"))
        # Without a digest it can't be made at all, and the desk says why.
        if entry.digest and not person.agreed(ctx, entry, whose, "may this call be made?"):
            return person.UNCHANGED
        desk.approve(call, digest=entry.digest)
    click.echo(f"agreed to {call}; it is made when the conversation is carried on", err=True)
    return 0
