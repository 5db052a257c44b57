"""`skillrun settle`: what becomes of a call whose process died, and the end of one that nobody wants any more."""

from __future__ import annotations

import click

from skillrun.cli import person, stored
from skillrun.cli.command import HELP, Option, Verb, colour_option
from skillrun.conversation.entry import State
from skillrun.errors import UsageError
from skillrun.problem import error


@click.command(
    "settle",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun settle release 2.0 --retry\n  skillrun settle release 2.0 --cancel\n\n"
    "Exit codes: 0 settled, 1 nothing was changed, 2 the call does not stand like that, or wrong usage.",
)
@click.argument("conversation")
@click.argument("call")
@click.option("--retry", cls=Option, section="Input", is_flag=True,
              help="Have a call in doubt made again; it may have been done already.")  # fmt: skip
@click.option("--give-up", cls=Option, section="Input", is_flag=True,
              help="End a call in doubt; the model reads that nobody knows whether it was done.")  # fmt: skip
@click.option("--cancel", cls=Option, section="Input", is_flag=True,
              help="End a call, whatever it waits for; one that is being made is ended soon.")  # fmt: skip
@person.person_options
@stored.store_option
@colour_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    conversation: str,
    call: str,
    retry: bool,
    give_up: bool,
    cancel: bool,
    yes: bool,
    ceiling: str | None,
    store: str | None,
) -> int:
    """Settle one CALL of CONVERSATION that is in doubt, because the process that made it died, or end any call."""
    if retry + give_up + cancel != 1:
        message = "say one of --retry, --give-up and --cancel"
        raise UsageError(error("usage", message, help="`skillrun settle --help` tells what each does"))
    whose = person.voice(yes=yes, ceiling=ceiling)
    with stored.existing(store) as kept:
        desk = person.desk_of(kept, conversation, whose)
        entry = person.found(desk, call, None if cancel else State.IN_DOUBT)
        if retry:
            question, change, done = (
                "make it again? it may have been done already",
                desk.retry,
                "is made again",
            )
        elif give_up:
            question, change, done = (
                "give it up, and tell the model that nobody knows?",
                desk.give_up,
                "is given up",
            )
        else:
            question, change, done = "end this call?", desk.cancel, "is cancelled"
        if not person.agreed(ctx, entry, whose, question):
            return person.UNCHANGED
        change(call)
    click.echo(f"the call {call} {done}", err=True)
    return 0
