"""`skillrun answer`: a person's answer to the question of one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skillrun.cli import fields, person, stored
from skillrun.cli.command import HELP, Option, Verb, colour_option
from skillrun.cli.terminal import stderr_view
from skillrun.conversation.entry import State
from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.report.waiting import Waiting, quoted, written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillrun.conversation.entry import Entry


@click.command(
    "answer",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun answer release 2.0\n  skillrun answer release 2.0 --field env=staging\n"
    '  echo \'{"env": "staging"}\' | skillrun answer release 2.0 --yes --json -\n\n'
    "Exit codes: 0 answered or declined, 1 nothing was changed, 2 the call does not wait for this, the answer does "
    "not fit, or wrong usage.",
)
@click.argument("conversation")
@click.argument("call")
@click.option("--field", "words", cls=Option, section="Input", multiple=True, metavar="NAME=VALUE",
              help="The value of a field; may be repeated.")  # fmt: skip
@click.option("--json", "given", cls=Option, section="Input", metavar="VALUES",
              help="The values of all fields as a JSON object, or `-` to read it from standard input.")  # fmt: skip
@click.option(
    "--decline",
    cls=Option,
    section="Input",
    is_flag=True,
    help="Leave it without an answer; the tool is told so.",
)
@person.person_options
@stored.store_option
@colour_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    conversation: str,
    call: str,
    words: tuple[str, ...],
    given: str | None,
    decline: bool,
    yes: bool,
    ceiling: str | None,
    store: str | None,
) -> int:
    """Answer the question of one CALL of CONVERSATION. The call is then made again, with the answer.

    At a terminal each field is asked for in turn. A tool's question is its own words, never skillrun's.
    """
    if bool(words) + (given is not None) + decline > 1:
        message = "--field, --json and --decline exclude one another"
        raise UsageError(error("usage", message, help="say one of them, or none at a terminal"))
    if given == "-" and not yes:
        message = "`--json -` reads standard input, so nobody can be asked there"
        raise UsageError(error("usage", message, help="add `--yes`, or give the values on the command line"))
    whose = person.voice(yes=yes, ceiling=ceiling)
    values = fields.from_json(given) if given is not None else fields.from_words(words) if words else None
    with stored.existing(store) as kept:
        desk = person.desk_of(kept, conversation, whose)
        entry = person.found(desk, call, State.AWAITING_INPUT)
        assert entry.question is not None  # noqa: S101 - the state says so
        if decline:
            if not person.agreed(ctx, entry, whose, "leave it without an answer?"):
                return person.UNCHANGED
            desk.decline(call, question=entry.question.key)
            click.echo(f"declined {call}", err=True)
            return 0
        answered = _answered(ctx, entry, whose, values)
        if answered is None:
            return person.UNCHANGED
        desk.answer(call, answered, question=entry.question.key)
    click.echo(f"answered {call}; it is made again when the conversation is carried on", err=True)
    return 0


def _answered(
    ctx: click.Context, entry: Entry, whose: person.Voice, values: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Show the question and return what somebody answers, None when nobody does."""
    assert entry.question is not None  # noqa: S101 - the state says so
    if values is None and entry.question.fields and whose is person.Voice.YES:
        message = "nobody is asked, so the values have to be given"
        raise UsageError(error("answer", message, help="add `--field NAME=VALUE`, `--json` or `--decline`"))
    if values is not None or not entry.question.fields:
        more = [] if values is None else ["  your answer:", *quoted(written(values), _shown(ctx, entry))]
        return (values or {}) if person.agreed(ctx, entry, whose, "give this answer?", more) else None
    return _asked(ctx, entry)


def _asked(ctx: click.Context, entry: Entry) -> Mapping[str, Any] | None:
    """Ask for the fields in turn, then whether that is the answer."""
    assert entry.question is not None  # noqa: S101 - the state says so
    person.show(ctx, entry)
    click.echo("  Ctrl-D leaves it as it is\n", err=True)
    typed = fields.from_terminal(entry.question.fields, _shown(ctx, entry))
    if typed is None:
        click.echo("nothing was changed", err=True)
        return None
    for line in ("  your answer:", *quoted(written(typed), _shown(ctx, entry))):
        click.echo(line, err=True, color=True)
    return typed if person.sure("give this answer?") else None


def _shown(ctx: click.Context, entry: Entry) -> Waiting:
    return Waiting(entry, stderr_view(ctx), 0.0)
