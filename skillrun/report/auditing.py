"""Auditing: the findings of profiles for people, for grep, and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillrun.report import shapes
from skillrun.report.diagnostics import concise, plain, summary
from skillrun.report.escape import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from skillrun.check.profile.finding import Finding
    from skillrun.report.showing import View


class Audited:
    """One profile and what was found in it. `made_up` are the values that parameters were given."""

    def __init__(
        self, path: Path, findings: Sequence[Finding], made_up: Mapping[str, str], *, loads: bool
    ) -> None:
        self.path = path
        self.findings = tuple(findings)
        self.made_up = dict(made_up)
        self.loads = loads


def lines(audited: Sequence[Audited], view: View) -> Iterator[str]:
    """Write each finding over several lines, a blank one between, and count them at the end."""
    for one in audited:
        for finding in one.findings:
            yield plain(finding.problem, base=view.base, style=view.style, columns=view.columns)
            yield f"  {view.style('=', 'blue')} confidence: {finding.confidence.value}"
            yield ""
    found = [finding.problem for one in audited for finding in one.findings]
    files = f"{len(audited)} profile{'' if len(audited) == 1 else 's'}"
    yield f"{files}: {summary(found) or 'nothing found'}"


def concise_lines(audited: Sequence[Audited], view: View) -> Iterator[str]:
    """Write each finding on one line: `path:line:column: rule message`."""
    for one in audited:
        for finding in one.findings:
            where = "" if finding.problem.at is not None else f"{escape(str(one.path))}: "
            yield where + concise(finding.problem, base=view.base).removeprefix("skillrun: " if where else "")


def shape(audited: Sequence[Audited]) -> dict[str, Any]:
    """Shape an audit as `audit/1`."""
    found = [finding.problem for one in audited for finding in one.findings]
    counts = {
        severity: sum(1 for problem in found if problem.severity.value == severity)
        for severity in ("error", "warning", "note")
    }
    return {
        **shapes.schema("audit"),
        "profiles": [
            {
                "path": shapes.path_or_none(one.path),
                "loads": one.loads,
                "assumed": one.made_up,
                "findings": [
                    {**shapes.problem(finding.problem), "confidence": finding.confidence.value}
                    for finding in one.findings
                ],
            }
            for one in audited
        ],
        "summary": counts,
    }
