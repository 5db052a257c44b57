"""Answers: one line of JSON for each call of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.launch.result import Termination
from skillrun.report import shapes
from skillrun.report.receipt import no_result, receipt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.launch.result import Result
    from skillrun.problem import Problem
    from skillrun.running.lines import Line

SCHEMA = shapes.schema("batch")["schema"]


def answer(line: Line, *, result: Result | None = None, problems: Sequence[Problem] = ()) -> shapes.Shape:
    """Shape what came of a line: a result, or the problems for which nothing was started.

    `line` and `call`, the digest of the line's bytes, tell a later batch which calls have been answered.
    """
    arguments = line.call.arguments if line.call is not None else ()
    shape = receipt(result) if result is not None else no_result(Termination.REFUSED, problems, arguments)
    return {
        **shapes.schema("batch"),
        "line": line.number,
        "call": line.digest,
        "id": line.id,
        "ok": result is not None and result.ok,
        "result": shape,
    }
