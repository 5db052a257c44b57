"""GitHub: findings as annotations of a workflow run, then all of them as a list: only ten annotations are shown a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.problem import Severity
from skillrun.report import diagnostics
from skillrun.report.document import name
from skillrun.report.escape import escape
from skillrun.report.findings import quiet, total

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skillrun.check.engine import Report
    from skillrun.check.finding import Finding

_WORDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_ORDER: Final = list(_WORDS)


def lines(report: Report, base: Path) -> Iterator[str]:
    """Write the annotations, the worst first, and the list. Paths below `base` are written from there."""
    for finding in sorted(report.findings, key=lambda one: _ORDER.index(one.severity)):
        yield _annotation(finding, base)
    for finding in report.findings:
        # A runner obeys a line that begins with `::`, whatever blanks stand before it.
        yield f"- {quiet(diagnostics.concise(finding.problem, base=base))}"
    for hidden in report.ignored:
        yield quiet(f"- ignored: {escape(hidden.finding.rule)} {escape(hidden.reason)}")
    yield total(report)


def _annotation(finding: Finding, base: Path) -> str:
    at = finding.problem.at
    parts = []
    if at is not None and at.path is not None:
        text = name(at.path)
        parts.append(("file", text[len(str(base)) + 1 :] if text.startswith(f"{base}/") else text))
        parts += [
            (key, str(value)) for key, value in (("line", at.line), ("col", at.column)) if value is not None
        ]
        if at.end_column is not None and at.line is not None:
            parts.append(("endColumn", str(at.end_column)))
    parts.append(("title", f"skillrun {finding.rule}"))
    said = ",".join(f"{key}={_property(value)}" for key, value in parts)
    advice = f"; {finding.problem.help}" if finding.problem.help is not None else ""
    return f"::{_WORDS[finding.severity]} {said}::{_data(finding.problem.message + advice)}"


def _data(text: str) -> str:
    return quiet(escape(text)).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
