"""Remembering: a record of a run, for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillrun.report.escape import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.report.shapes import Shape


def remembered(record: Shape) -> Iterator[str]:
    """Write a record: what ran, how it ended, what enforced it, what it had."""
    skill, script = record.get("skill") or {}, record.get("script") or {}
    yield from _row("run", f"{_text(skill.get('key') or skill.get('path'))}/{_text(script.get('name'))}")
    yield from _row("at", _text(record.get("time")))
    yield from _row("digest", _text(skill.get("digest")))
    yield from _row("ended", " ".join(_end(record)))
    if record.get("backend") is not None:
        level = "" if record.get("level") is None else f" {record['level']}"
        promised = record.get("guarantees") or {}
        yield from _row("enforced", f"{_text(record['backend'])}{level}: {_states(promised)}")
    grant = record.get("grant") or {}
    for what in ("granted", "narrowed", "refused"):
        for item in grant.get(what) or ():
            yield from _row(
                what, f"{_text(item.get('capability'))} {_text(item.get('value', item.get('asked')))}"
            )
    for what in ("denials", "violations", "warnings"):
        for found in record.get(what) or ():
            words = (
                found.get("message")
                or f"{found.get('operation')} {found.get('path')} ({found.get('evidence')})"
            )
            yield from _row(what.removesuffix("s"), _text(words))


def _row(name: str, text: str) -> Iterator[str]:
    yield f"{name:<10}{text}"


def _end(record: Shape) -> Iterator[str]:
    yield _text(record.get("termination"))
    for name, words in (("exit_code", "with"), ("signal", "by signal")):
        if record.get(name) is not None:
            yield f"{words} {_text(record[name])}"
    if record.get("duration_s") is not None:
        yield f"after {_text(record['duration_s'])} s"
    if record.get("leftovers"):
        yield f"({_text(record['leftovers'])} left-over processes ended)"
    if record.get("error"):
        yield f": {_text(record['error'].get('message'))}"


def _states(promised: Shape) -> str:
    """Name the guarantees by how far they held."""
    groups: dict[str, list[str]] = {}
    for name, state in promised.items():
        groups.setdefault(_text(state), []).append(_text(name))
    return "; ".join(f"{state} {', '.join(names)}" for state, names in groups.items())


def _text(value: Any) -> str:
    """Write a value of a file that anybody could have written to."""
    return "unknown" if value is None else escape(str(value))
