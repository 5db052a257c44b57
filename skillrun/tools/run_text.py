"""Run text: what a model reads about a script's run. Never a hint about permissions: that is for the operator (DESIGN 10)."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

from skillrun.launch.result import Termination
from skillrun.tools.outcome import NO_OUTPUT, Outcome, clean, jsonable

if TYPE_CHECKING:
    from skillrun.launch.result import Result
    from skillrun.tools.outcome import Attachment


def outcome_of(
    result: Result, attachments: tuple[Attachment, ...] = (), *, output: str | None = None
) -> Outcome:
    """Return the outcome of a run. `output` is what the script was declared to print: `json`, `text` or None."""
    if not result.ok:
        return Outcome(
            _failure(result),
            is_error=True,
            structured=_data(result.json),
            attachments=attachments,
            result=result,
        )
    structured: Any = None if output == "text" else result.json
    if output == "json" and structured is None:
        try:
            structured = json.loads(result.stdout.text)
        except (ValueError, RecursionError):
            text = clean(f"Error (output): the script was to print JSON and printed {_spoken(result)}")
            return Outcome(text, is_error=True, attachments=attachments, result=result)
    text = result.stdout.text if result.stdout.text.strip() else result.stderr.text
    names = "".join(f"\n[file: {one.name}]" for one in attachments)
    spoken = clean(text.rstrip("\n"))  # as a shell does where it takes what a program printed
    joined = names.strip("\n") if spoken == NO_OUTPUT and names else spoken + names
    return Outcome(joined, structured=_data(structured), attachments=attachments, result=result)


def _data(value: Any) -> Any:
    """Return what a script printed as data that every API takes: no half characters, no NaN; None where it is too deep."""
    try:
        return jsonable(value)
    except TypeError:
        return None


def _failure(result: Result) -> str:
    said = _spoken(result)
    match result.termination:
        case Termination.EXITED:
            return _headed(f"exit {result.exit_code}", said)
        case Termination.TIMED_OUT:
            return _headed("timed out", said, f"[killed: exceeded {result.timeout_s:g} s]")
        case Termination.MEMORY_LIMIT:
            return _headed("out of memory", said, "[killed: exceeded its memory]")
        case Termination.SIGNALED:
            return _headed(f"signal {result.signal}, {_signal(result.signal)}", said)
        case Termination.CANCELLED:
            return _headed("cancelled", said)
        case _:
            # What is missing in a grant is the operator's to know; a model that reads it asks for more.
            return _headed("not started", "the script was not started here")


def _headed(what: str, said: str, tail: str = "") -> str:
    lines = "\n" in said
    return f"Error ({what}):{chr(10) if lines else ' '}{said}" + (
        f"{chr(10) if lines else ' '}{tail}" if tail else ""
    )


def _spoken(result: Result) -> str:
    both = "\n".join(text.rstrip("\n") for text in (result.stdout.text, result.stderr.text) if text.strip())
    return clean(both)


def _signal(number: int | None) -> str:
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return "unknown"
