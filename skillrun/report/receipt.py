"""Receipt: a run as the JSON of DESIGN 13, also one that never came to a Result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillrun.report import shapes
from skillrun.report.document import TooDeepError, clean, name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.launch.capture import Captured
    from skillrun.launch.result import Result, Termination
    from skillrun.problem import Problem


def receipt(result: Result) -> shapes.Shape:
    """Shape a Result."""
    usage = result.usage
    return {
        **shapes.schema("result"),
        "skill": {"key": result.skill.key, "path": name(result.skill.path), "digest": result.digest},
        "script": {
            "name": name(result.script_name),
            "path": name(result.script_path),
            "interpreter": None if result.interpreter is None else name(result.interpreter.path),
        },
        "argv": [name(word) for word in result.argv],
        "cwd": name(result.cwd),
        "termination": result.termination.value,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "error": None if result.error is None else shapes.problem(result.error),
        "duration_s": round(result.duration_s, 6),
        "timeout_s": shapes.finite(result.timeout_s),
        "stdout": _stream(result.stdout),
        "stderr": _stream(result.stderr),
        "json": _own(result.json),
        "leftovers": result.leftovers,
        "backend": result.backend,
        "level": result.level,
        "guarantees": shapes.guarantees(result.guarantees),
        "grant": shapes.grant(result.grant),
        "denials": [
            {
                "operation": denial.operation,
                "path": shapes.path_or_none(denial.path),
                "evidence": denial.evidence,
                "fix": denial.fix,
            }
            for denial in result.denials
        ],
        "violations": [shapes.problem(found) for found in result.violations],
        "warnings": [shapes.problem(found) for found in dict.fromkeys(result.warnings)],
        "usage": None
        if usage is None
        else {"cpu_s": round(usage.cpu_s, 6), "peak_rss_bytes": usage.peak_rss_bytes},
    }


def no_result(
    termination: Termination, problems: Sequence[Problem], arguments: Sequence[str]
) -> shapes.Shape:
    """Shape a run that ended before there was a Result: a skill that can't be read, a stop from outside.

    All members of a Result are there, what is not known is null; `argv` are the script's arguments alone.
    """
    return {
        **shapes.schema("result"),
        "skill": {"key": None, "path": None, "digest": None},
        "script": {"name": None, "path": None, "interpreter": None},
        "argv": [name(word) for word in arguments],
        "cwd": None,
        "termination": termination.value,
        "exit_code": None,
        "signal": None,
        "error": shapes.problem(problems[0]),
        "duration_s": None,
        "timeout_s": None,
        "stdout": None,
        "stderr": None,
        "json": None,
        "leftovers": None,
        "backend": None,
        "level": None,
        "guarantees": None,
        "grant": None,
        "denials": [],
        "violations": [],
        "warnings": [shapes.problem(found) for found in problems[1:]],
        "usage": None,
    }


def _stream(captured: Captured) -> shapes.Shape:
    return {"text": captured.text, "bytes": captured.bytes, "truncated": captured.truncated}


def _own(value: Any) -> Any:
    """Return a script's own JSON, None when it is nested too deeply to be passed on."""
    try:
        return clean(value)
    except TooDeepError:
        return None
