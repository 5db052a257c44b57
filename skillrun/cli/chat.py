"""`skillrun chat`: the smallest real loop: a program that is the model, and the scripts of skills that it calls."""

from __future__ import annotations

import shlex
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from skillrun.cli import stored
from skillrun.cli.command import HELP, Option, Verb, emit, emit_bytes, say
from skillrun.cli.setting import Setting, current, output_options, setting_options
from skillrun.cli.teller import Teller
from skillrun.conversation.conversation import STEPS, Conversation, Progress
from skillrun.conversation.entry import State
from skillrun.conversation.models.command import TIMEOUT, CommandError, CommandModel
from skillrun.conversation.store import checked_name
from skillrun.errors import SkillrunError, UsageError
from skillrun.host import current_host
from skillrun.problem import error
from skillrun.report import document
from skillrun.report.escape import escape, sentence
from skillrun.report.pending import chat_shape
from skillrun.report.text import clip
from skillrun.report.waiting import STATES, commands
from skillrun.tools.box import Toolbox
from skillrun.tools.script_tool import ScriptTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillrun.conversation.conversation import Standing
    from skillrun.tools.events import Progress as Said
    from skillrun.tools.outcome import Outcome, ToolCall

    OnProgress = Callable[[ToolCall, Said], None]
    OnResult = Callable[[ToolCall, Outcome], None]

FAILED: Final = 1
"""The exit code when the model gave no answer."""
WAITING: Final = 3
"""The exit code when calls wait."""
_LONGEST: Final = 16 << 20  # characters of a message
_NAME: Final = 63  # columns of a name that the model wrote; no tool has a longer one


@click.command(
    "chat",
    cls=Verb,
    context_settings=HELP,
    epilog='\b\nExamples:\n  skillrun chat --model ./model.py --conversation release "Deploy it"\n'
    "  skillrun chat --model ./model.py --conversation release\n\n"
    "Exit codes: 0 the model has answered, 1 it failed or has used up its replies, 2 wrong usage or configuration, "
    "3 calls wait: for a person, a task or another process.",
)
@click.argument("message", required=False, metavar="[MESSAGE|-]")
@click.option("--model", "words", cls=Option, section="Input", required=True, metavar="COMMAND",
              help="The program that is the model: started once, with all of your rights, and spoken to in lines of JSON.")  # fmt: skip
@click.option("--conversation", cls=Option, section="Input", metavar="NAME",
              help="The conversation to go on with, or a new one.  [default: a new name]")  # fmt: skip
@click.option("--timeout", cls=Option, section="Input", type=click.FloatRange(0, 86_400, min_open=True), default=TIMEOUT,
              metavar="SECONDS", help=f"How long the model may take for one reply.  [default: {TIMEOUT:g}]")  # fmt: skip
@click.option("--steps", cls=Option, section="Input", type=click.IntRange(1, 10_000), default=STEPS, metavar="N",
              help=f"Replies of the model at most.  [default: {STEPS}]")  # fmt: skip
@stored.store_option
@setting_options(running=True)
@output_options
@click.pass_context
def command(
    ctx: click.Context,
    *,
    message: str | None,
    words: str,
    conversation: str | None,
    timeout: float,
    steps: int,
    store: str | None,
    setting: Setting,
    as_json: bool,
) -> int:
    """Say MESSAGE to a model that may call the scripts of your skills, confined, and write its answer.

    A call that needs a person is left waiting, and no process waits for it: settle it with the command that is shown, and
    run `chat` again without MESSAGE, here or elsewhere. COMMAND itself is yours: nothing confines it.
    """
    if conversation is None and message is None:
        advice = "write a MESSAGE, or `--conversation NAME` to go on with one"
        raise UsageError(error("usage", "there is nothing to say and nothing to go on with", help=advice))
    if conversation is not None:
        checked_name(conversation)
    text = _text(message)
    command_words = _words(words)
    teller = Teller(ctx)
    progress, result = _listeners(ctx, teller)
    workspace = setting.folder()
    roots = [current() / root for root in setting.skills]
    with (
        stored.made(store, workspace=workspace, roots=roots) as kept,
        setting.runner(ctx.obj, hidden=stored.hidden(store)) as runner,
        Toolbox(runner=runner, on_progress=[progress], on_result=[result]) as box,
    ):
        say(ctx, box.problems)
        for one in box.tools:
            if isinstance(one, ScriptTool):
                one.on_plan = teller.before
        model = CommandModel(command_words, folder=current(), environ=current_host().environ, timeout=timeout)
        try:
            talk = Conversation(box, model, store=kept, name=conversation, steps=steps)
            if text is not None:
                talk.say(text)
            teller.line(f"conversation {talk.name}; the model `{escape(command_words[0])}` is not confined")
            standing = _completed(talk)
        except CommandError as wrong:
            say(ctx, wrong.problems)
            return FAILED
        finally:
            with ctx.obj.held():
                model.close()
        return _told(teller, talk.name, standing, store=store, as_json=as_json)


def _completed(talk: Conversation) -> Standing:
    """Go on until the model has answered, or only people and others are waited for."""
    while True:
        standing = talk.complete()
        if not any(one.state is State.PAUSED for one in standing.waiting):
            return standing
        time.sleep(standing.look_again or 1.0)


def _told(teller: Teller, name: str, standing: Standing, *, store: str | None, as_json: bool) -> int:
    """Write what came of it and return the exit code."""
    if standing.progress is Progress.NEW:
        message = f"nothing was said yet in a conversation `{name}`"
        raise UsageError(error("no-such-conversation", message, help="write a MESSAGE to begin it"))
    if as_json:
        emit_bytes(document.write(chat_shape(name, standing, now=time.time())))
    elif standing.progress is Progress.DONE:
        emit([_plain(line) for line in standing.text.split("\n")])
    if standing.progress is Progress.DONE:
        return 0
    for one in standing.waiting:
        teller.line(f"{one.key} {clip(escape(one.call.name), _NAME)} {STATES[one.state]}")
        for settle in commands(one, store):
            teller.line(f"  {escape(settle)}")
    if standing.progress is Progress.WAITING:
        return WAITING
    teller.line(
        "the model has used up its replies without an answer; the same command without MESSAGE goes on"
    )
    return FAILED


def _plain(line: str) -> str:
    """Escape a line of the model's answer; a tab moves nothing that matters."""
    return "\t".join(map(escape, line.split("\t")))


def _text(message: str | None) -> str | None:
    """Return what is said, `-` for what stands on standard input. UsageError for what is too long."""
    if message != "-":
        return message
    try:
        text = sys.stdin.read(_LONGEST + 1) if sys.stdin is not None else ""
    except UnicodeDecodeError:
        raise UsageError(error("usage", "the message on standard input is not UTF-8")) from None
    if len(text) > _LONGEST:
        raise UsageError(error("usage", f"a message has at most {_LONGEST >> 20} MiB"))
    return text


def _words(text: str) -> list[str]:
    """Cut the model's command line into words as a shell would; no shell sees it."""
    try:
        words = shlex.split(text)
    except ValueError as wrong:
        raise UsageError(error("usage", f"`--model` can't be read: {wrong}")) from None
    if not words:
        raise UsageError(error("usage", "`--model` names no command", help="write `--model ./model.py`"))
    return words


def _listeners(ctx: click.Context, teller: Teller) -> tuple[OnProgress, OnResult]:
    """Return what tells the operator how a call goes, and why it failed, which the model is not told."""

    def progress(_: ToolCall, said: Said) -> None:
        teller.line(sentence(said.message))

    def result(_: ToolCall, outcome: Outcome) -> None:
        if isinstance(outcome.error, SkillrunError):
            say(ctx, outcome.error.problems)
        if outcome.result is not None:
            teller.after(outcome.result)

    return progress, result
