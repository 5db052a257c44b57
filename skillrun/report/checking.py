"""Checking: what a check found, as the JSON of DESIGN 13: paths relative to the project."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from skillrun.problem import Severity
from skillrun.report import shapes
from skillrun.report.document import name

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.check.engine import Hidden, Report
    from skillrun.check.finding import Finding
    from skillrun.problem import At


def shape(report: Report, base: Path) -> shapes.Shape:
    """Shape a report as `check/1`."""
    count = Counter(finding.severity for finding in report.findings)
    return {
        **shapes.schema("check"),
        "checked": {"skills": len(report.subjects), "scripts": report.scripts},
        "findings": [_finding(finding, base) for finding in report.findings],
        "ignored": [_ignored(hidden, base) for hidden in report.ignored],
        "summary": {
            "errors": count[Severity.ERROR],
            "warnings": count[Severity.WARNING],
            "notes": count[Severity.NOTE],
            "ignored": len(report.ignored),
            "in_baseline": len(report.accepted),
            "complete": report.complete,
        },
    }


def relative(path: Path, base: Path) -> str:
    """Return a path relative to the project, absolute outside."""
    text, top = str(path), str(base)
    if text == top:
        return "."
    return name(text[len(top) + 1 :] if text.startswith(f"{top}/") else text)


def _finding(finding: Finding, base: Path) -> shapes.Shape:
    return {
        **shapes.problem(finding.problem),
        **_place(finding.problem.at, base),
        "confidence": finding.confidence.value,
        "skill": None if finding.skill is None else name(finding.skill),
        "fingerprint": finding.fingerprint,
        "related": [_place(at, base) for at in finding.related],
    }


def _ignored(hidden: Hidden, base: Path) -> shapes.Shape:
    return {
        "rule": hidden.finding.rule,
        "skill": None if hidden.finding.skill is None else name(hidden.finding.skill),
        "fingerprint": hidden.finding.fingerprint,
        "reason": hidden.reason,
        **_place(hidden.at, base),
    }


def _place(at: At | None, base: Path) -> shapes.Shape:
    if at is None or at.path is None:
        return {"path": None, "line": None, "column": None}
    return {"path": relative(at.path, base), "line": at.line, "column": at.column}
