"""`skillrun pending`: the calls that have no result yet, whole, the oldest first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from skillrun.cli import stored
from skillrun.cli.command import HELP, Verb, emit, emit_bytes
from skillrun.cli.person import as_it_is
from skillrun.cli.setting import output_options
from skillrun.cli.terminal import stdout_view
from skillrun.conversation.claims import Here
from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.report import document
from skillrun.report.pending import pending_shape
from skillrun.report.waiting import Waiting, commands, lines, total

if TYPE_CHECKING:
    from skillrun.conversation.entry import Entry
    from skillrun.conversation.store import Store


@click.command(
    "pending",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun pending\n  skillrun pending release --json | jq '.calls[].key'\n\n"
    "Exit codes: 0 shown, also when no call waits, 2 there is no such conversation, or wrong usage.",
)
@click.argument("conversation", required=False)
@stored.store_option
@output_options
@click.pass_context
def command(ctx: click.Context, *, conversation: str | None, store: str | None, as_json: bool) -> int:
    """Show every call that has no result yet, of CONVERSATION or of all, the oldest first.

    What a model, a skill or a script wrote stands behind `|`, whole and escaped. Nothing is changed.
    """
    now = time.time()
    with stored.existing(store) as kept:
        calls = [] if kept is None else _open(kept, conversation)
        if kept is None and conversation is not None:
            raise _unknown(conversation)
    if as_json:
        emit_bytes(document.write(pending_shape(stored.place(store), calls, now=now)))
        return 0
    view = stdout_view(ctx)
    for one in calls:
        emit([*lines(Waiting(one, view, now, tuple(commands(one, store)))), ""])
    click.echo(total(len(calls)), err=True)
    return 0


def _open(kept: Store, conversation: str | None) -> list[Entry]:
    if conversation is not None and conversation not in kept.conversations():
        raise _unknown(conversation)
    here = Here()
    found = [as_it_is(one, here) for one in kept.entries(conversation, open_only=True)]
    return sorted(found, key=lambda one: (one.since or 0.0, one.conversation, one.seq, one.position))


def _unknown(conversation: str) -> UsageError:
    message = f"there is no conversation `{conversation}`"
    return UsageError(
        error("no-such-conversation", message, help="leave the name out to see the calls of all")
    )
