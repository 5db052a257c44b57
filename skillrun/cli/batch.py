"""`skillrun batch`: many calls from a file, a few at once, one line of answer for each."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Final

import click

from skillrun.cli.answers_file import AnswersFile, opened
from skillrun.cli.command import HELP, Option, Verb, colour_option, say, verbose_option
from skillrun.cli.interrupts import Stopped
from skillrun.cli.logbook import log_option, records
from skillrun.cli.setting import Setting, current, named_skill, setting_options
from skillrun.errors import SkillrunError, UsageError
from skillrun.host import current_host
from skillrun.problem import error
from skillrun.report.answers import answer
from skillrun.running.call import Call
from skillrun.running.lines import KEYS, Line, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from skillrun.problem import Problem
    from skillrun.report.shapes import Shape
    from skillrun.runner import Runner
    from skillrun.running.call import Reply

_SHARD: Final = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})")


@click.command(
    "batch",
    cls=Verb,
    context_settings=HELP,
    epilog="\b\nExamples:\n  skillrun batch calls.jsonl --output answers.jsonl\n"
    "  skillrun batch calls.jsonl --output part-2.jsonl --shard 2/8 --limit 16\n\n"
    "A line is an object with "
    + ", ".join(f"`{key}`" for key in KEYS)
    + "; `skill` is needed. Nothing in it is a "
    "permission: what a script may do is said by the skill, your files and --ceiling.\n\n"
    "Exit codes: 0 every script ended with 0; 1 not every one; 2 wrong usage, nothing was started.",
)
@click.argument("calls", metavar="CALLS.jsonl")
@setting_options(running=True)
@click.option(
    "--strict",
    cls=Option,
    section="Sandbox",
    is_flag=True,
    help="Refuse a call when anything asked for was cut.",
)
@click.option("--limit", cls=Option, section="Input", type=click.IntRange(1, 1_000), metavar="N",
              help="Calls at once.  [default: one for each processor]")  # fmt: skip
@click.option("--shard", cls=Option, section="Input", metavar="K/N",
              help="Make every Nth call only, from the Kth on, so that N machines make them all.")  # fmt: skip
@click.option("--output", cls=Option, metavar="FILE",
              help="Append the answers to FILE and leave out calls that have one there.  [default: standard output]")  # fmt: skip
@log_option
@verbose_option
@colour_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    calls: str,
    setting: Setting,
    strict: bool,
    limit: int | None,
    shard: str | None,
    output: str | None,
    log: str | None,
) -> int:
    """Make the calls that stand in CALLS.jsonl, one a line, and write one line of answer for each.

    Answers come in the order in which the scripts end; each names its line. A line that is wrong is an
    answer with its place, and the others are made.
    """
    at_once = limit or len(os.sched_getaffinity(0))
    part = _shard(shard)
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(_opened(calls))
        answers = (
            stack.enter_context(opened(current() / output)) if output is not None else AnswersFile(1, {})
        )
        written = records(log, current_host(), current())
        runner = stack.enter_context(setting.runner(ctx.obj, at_once=at_once, recorder=written))
        batch = _Batch(ctx, runner, answers, strict=strict)
        lines = _of_shard(read_lines(source, current() / calls), part)
        with _progress(source, part, batch):
            try:
                batch.make(lines, at_once)
            except Stopped as stopped:
                reason = f"stopped by {stopped.reason}; what was under way was ended and has no answer"
                say(ctx, (error("stopped", reason, help="the same command goes on" if output else None),))
                return stopped.exit_code
        say(ctx, written.problems[:1] if written is not None else ())
        return batch.close()


class _Batch:
    """Makes calls and writes their answers."""

    def __init__(self, ctx: click.Context, runner: Runner, answers: AnswersFile, *, strict: bool) -> None:
        self._ctx = ctx
        self._runner = runner
        self._answers = answers
        self._strict = strict
        self._counts: Counter[str] = Counter()
        self.told: list[click.progressbar] = []  # type: ignore[valid-type] # click's class has no public name

    def make(self, lines: Iterable[Line], at_once: int) -> None:
        """Make every call that has no answer yet."""
        under_way: dict[int, Line] = {}
        replies = self._runner.replies(self._calls(lines, under_way), limit=at_once)
        for reply in replies:
            self._reply(under_way.pop(reply.index), reply)

    def close(self) -> int:
        """Say how it went, and return the exit code."""
        counts = self._counts
        parts = [
            f"{counts[word]} {word}" for word in ("ok", "failed", "wrong", "answered before") if counts[word]
        ]
        click.echo(f"skillrun: {sum(counts.values())} calls: {', '.join(parts) or 'none'}", err=True)
        return 1 if counts["failed"] or counts["wrong"] or counts["failed before"] else 0

    def _calls(self, lines: Iterable[Line], under_way: dict[int, Line]) -> Iterator[Call]:
        """Give the calls to be made; the others are answered, or counted, at once."""
        index = 0
        for line in lines:
            if self._answers.has(line):
                self._counts["answered before"] += 1
                self._counts["failed before"] += not self._answers.kept[line.number, line.digest]
                self._step()
                continue
            try:
                call = self._named(line)
            except SkillrunError as wrong:
                self._wrong(line, wrong.problems)
                continue
            under_way[index] = line
            index += 1
            yield call

    def _named(self, line: Line) -> Call:
        """Return the call of a line, its skill found as `run` finds it."""
        if line.call is None:
            raise UsageError(*([line.problem] if line.problem is not None else []))
        call = line.call
        skill = named_skill(str(call.skill), self._runner)
        return Call(skill, call.script, call.arguments, call.stdin, call.timeout, self._strict)

    def _reply(self, line: Line, reply: Reply) -> None:
        if reply.result is None:
            self._wrong(line, reply.error.problems if reply.error is not None else ())
            return
        self._write(answer(line, result=reply.result))
        self._counts["ok" if reply.ok else "failed"] += 1

    def _wrong(self, line: Line, problems: tuple[Problem, ...]) -> None:
        say(self._ctx, problems)
        self._write(answer(line, problems=problems))
        self._counts["wrong"] += 1

    def _write(self, shape: Shape) -> None:
        self._answers.write(shape)
        self._step()

    def _step(self) -> None:
        for bar in self.told:
            bar.update(1)  # type: ignore[attr-defined] # see `told`


@contextlib.contextmanager
def _opened(calls: str) -> Iterator[BinaryIO]:
    """Open the file of calls; `-` is standard input."""
    if calls == "-":
        yield sys.stdin.buffer
        return
    try:
        file = (current() / calls).open("rb")
    except OSError as wrong:
        message = f"`{calls}` can't be read: {wrong.strerror}"
        raise UsageError(
            error("batch-calls", message, help="name a file with one call a line, or `-`")
        ) from None
    with file:
        yield file


def _shard(text: str | None) -> tuple[int, int]:
    """Read `K/N` as the remainder and the divisor of line numbers."""
    if text is None:
        return 0, 1
    found = _SHARD.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        raise UsageError(
            error("batch-shard", f"`{text}` is no shard", help="write `2/8` for the second of eight")
        )
    return int(found[1]) - 1, int(found[2])


def _of_shard(lines: Iterable[Line], part: tuple[int, int]) -> Iterator[Line]:
    """Give the lines of one shard. By line numbers, so that no shard depends on what is in the file."""
    rest, divisor = part
    return (line for line in lines if (line.number - 1) % divisor == rest)


@contextlib.contextmanager
def _progress(source: BinaryIO, part: tuple[int, int], batch: _Batch) -> Iterator[None]:
    """Show a bar on standard error where that is a terminal and the number of calls can be counted."""
    if not sys.stderr.isatty() or not source.seekable():
        yield
        return
    count = sum(1 for number, line in enumerate(source) if line.strip() and number % part[1] == part[0])
    source.seek(0)
    with click.progressbar(length=count, file=sys.stderr, show_pos=True) as bar:
        batch.told.append(bar)
        yield
