"""Person: whose word a call that waits gets: somebody's at a terminal, or `--yes` where the operator's file lets it count."""

from __future__ import annotations

import enum
import os
import pwd
import time
from typing import TYPE_CHECKING, Any

import click

from skillrun.cli.command import Option
from skillrun.cli.setting import Setting, current
from skillrun.cli.terminal import asked, somebody_there, stderr_view
from skillrun.conversation import transitions
from skillrun.conversation.desk import Desk
from skillrun.errors import UsageError
from skillrun.host import current_host
from skillrun.permissions.layers import operator_tools
from skillrun.problem import error
from skillrun.report import waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillrun.conversation.claims import Here
    from skillrun.conversation.entry import Entry, State
    from skillrun.conversation.store import Store

UNCHANGED = 1
"""The exit code of who was asked and did not agree."""


class Voice(enum.Enum):
    """Whose word it is."""

    PERSON = "a person at a terminal"
    YES = "--yes"

    @property
    def name_of(self) -> str:
        """What is written beside the word: the user, and that nobody was asked."""
        try:
            # Not by the environment, which says what anybody wants.
            user = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # a number without a name
            user = str(os.getuid())
        return f"{user} (--yes)" if self is Voice.YES else user


def person_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--yes` and `--ceiling`, which the command gets as `yes` and `ceiling`."""
    options = [
        click.option("--yes", cls=Option, section="Input", is_flag=True,
                     help="Ask nobody. Counts only where your own skillrun.yaml says `tools: {unattended_approval: true}`."),
        click.option("--ceiling", cls=Option, section="Input", metavar="FILE",
                     help="A file to look for that in, besides.  [default: your own skillrun.yaml]"),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def voice(*, yes: bool, ceiling: str | None) -> Voice:
    """Return whose word the command takes. UsageError where there is nobody, and where `--yes` does not count."""
    if not yes:
        if somebody_there():
            return Voice.PERSON
        message = "this needs a person's word at a terminal, and this is none"
        advice = "run it yourself; `--yes` counts where your own skillrun.yaml says `tools: {unattended_approval: true}`"
        raise UsageError(error("settle-terminal", message, help=advice))
    host = current_host()
    said = operator_tools(
        ceiling=Setting(ceiling=ceiling).named_ceiling(),
        here=current(),
        config_file=host.config_file,
        machine_file=host.machine_file,
    )
    if said.unattended_approval is True:
        return Voice.YES
    where = host.config_file or "your own skillrun.yaml"
    message = "`--yes` does not count here: the operator has not said that nobody need be asked"
    if said.unattended_approval is False:
        message = "`--yes` does not count here: `tools.unattended_approval` is false"
    advice = (
        f"write `tools: {{unattended_approval: true}}` into {where}, or run it at a terminal without `--yes`"
    )
    raise UsageError(error("settle-unattended", message, help=advice))


def desk_of(store: Store | None, conversation: str, whose: Voice) -> Desk:
    """Return the desk of a conversation. UsageError when there is none of that name."""
    if store is None or conversation not in store.conversations():
        message = f"there is no conversation `{conversation}`"
        raise UsageError(
            error("no-such-conversation", message, help="`skillrun pending` lists the calls that wait")
        )
    return Desk(store, conversation, whose.name_of)


def as_it_is(entry: Entry, here: Here) -> Entry:
    """Return a call as it stands today: one whose process is gone may be in doubt by now."""
    return transitions.reclaimed(entry, here)


def found(desk: Desk, key: str, state: State | None = None) -> Entry:
    """Return a call that can be settled. UsageError for one that is over, or does not wait for this."""
    entry = as_it_is(desk.entry(key), desk.here)
    if entry.state is state or (state is None and entry.open):
        return entry
    named = f"the call {key} of conversation `{desk.conversation}`"
    advice = next(waiting.commands(entry), "`skillrun pending` lists the calls that wait")
    raise UsageError(error("call-state", f"{named} {waiting.STATES[entry.state]}", help=advice))


def agreed(ctx: click.Context, entry: Entry, whose: Voice, question: str, more: Iterable[str] = ()) -> bool:
    """Show a call whole and ask about it; a terminal that says nothing says no."""
    show(ctx, entry, more)
    return whose is Voice.YES or sure(question)


def show(ctx: click.Context, entry: Entry, more: Iterable[str] = ()) -> None:
    """Show a call whole."""
    shown = waiting.Waiting(entry, stderr_view(ctx), time.time())
    for line in (*waiting.lines(shown), *more):
        click.echo(line, err=True, color=True)  # the style has decided already


def sure(question: str) -> bool:
    """Ask a question that only a clear yes answers."""
    if (asked(f"{question} [y/N]", afresh=True) or "").strip().lower() in {"y", "yes"}:
        return True
    click.echo("nothing was changed", err=True)
    return False
