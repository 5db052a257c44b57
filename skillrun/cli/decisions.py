"""Decisions: what a Seatbelt profile decides, for `explain --profile`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from skillrun.cli.command import emit, emit_bytes, say
from skillrun.cli.reading import profile_text
from skillrun.cli.terminal import stdout_view
from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.report import document
from skillrun.report.deciding import Decided, lines, shape
from skillrun.sandbox.seatbelt.evaluate import Evaluator
from skillrun.sandbox.seatbelt.parse import parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NUMBERS: Final = frozenset({"file-mode", "socket-protocol"})


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What a profile is asked: the file, its parameters, the operation, and facts that only a kernel knows."""

    file: str
    parameters: Mapping[str, str]
    operation: str | None
    given: tuple[str, ...] = ()


def explain_profile(ctx: click.Context, inquiry: Inquiry, targets: Sequence[str], *, as_json: bool) -> int:
    """Answer for each target and return the exit code: 0 all allowed, 1 any denied, 4 unknown."""
    operation = inquiry.operation
    if operation is None or not targets:
        raise click.UsageError(
            "a profile is asked about an operation and targets\nwrite `--operation file-read-data /private/etc/hosts`",
            ctx=ctx,
        )
    path, text = profile_text(inquiry.file)
    profile = parse(text, inquiry.parameters, path=path)
    say(ctx, profile.faults)
    evaluator, facts = Evaluator(profile), _given(inquiry.given)
    try:
        answers = [Decided.of(evaluator, operation, target, facts) for target in targets]
    except ValueError as wrong:
        raise UsageError(error("target", str(wrong))) from wrong
    if as_json:
        emit_bytes(document.write(shape(answers)))
    else:
        emit(lines(answers, stdout_view(ctx)))
    words = {answer.word for answer in answers}
    return 1 if "denied" in words else 4 if "unknown" in words else 0


def _given(facts: Sequence[str]) -> dict[str, Any]:
    """Read `NAME=VALUE` facts; numbers as in a profile's author's mind: 0644 is octal."""
    found: dict[str, Any] = {}
    for fact in facts:
        name, equals, value = fact.partition("=")
        if not equals or (name in _NUMBERS and not value.isdigit()):
            message = f"`--given {fact}` says nothing"
            raise UsageError(error("usage", message, help="write `--given vnode-type=DIRECTORY`"))
        if name in _NUMBERS:
            found[name] = int(value, 8 if name == "file-mode" else 10)
        elif name == "extension":
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found
