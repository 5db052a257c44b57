"""SARIF 2.1.0: findings for code scanning.

Locations are URI references relative to the repository, lines and columns count from 1 in code points. What
has no place in the project can't be a result that GitHub shows, so it becomes a notification.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import skillrun
from skillrun.check.static.use import Confidence
from skillrun.problem import Severity
from skillrun.report.document import name
from skillrun.report.escape import escape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillrun.check.engine import Report
    from skillrun.check.finding import Finding
    from skillrun.check.rule import Rule
    from skillrun.problem import At

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_PRECISION: Final = {Confidence.HIGH: "high", Confidence.MEDIUM: "medium", Confidence.LOW: "low"}
_SECURITY: Final = {Severity.ERROR: "8.0", Severity.WARNING: "5.0", Severity.NOTE: "2.0"}
"""GitHub's `security-severity`: high, medium, low on its scale from 0 to 10."""
_PATH_SAFE: Final = "/~!$&'()*+,;=:@"  # pchar of RFC 3986 and the slash
_LINK = re.compile(r"[\\\[\]]")


def log(report: Report, rules: Sequence[Rule], base: Path) -> dict[str, Any]:
    """Make the log. Each rule that found something is listed once; no findings give a run with no results."""
    used = sorted({finding.rule for finding in report.findings})
    index = {rule: number for number, rule in enumerate(used)}
    by_name = {rule.name: rule for rule in rules}
    results, notifications = [], []
    for finding in report.findings:
        where = _location(finding.problem.at, base)
        if where is None:
            notifications.append(_notification(finding, index))
        else:
            results.append(_result(finding, where, index, base))
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "skillrun",
                        "version": skillrun.__version__,
                        "rules": [_rule(by_name[rule]) for rule in used],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
                "results": results,
                "properties": {"ignored": len(report.ignored), "inBaseline": len(report.accepted)},
            }
        ],
    }


def uri(path: Path | str) -> str:
    """Return a relative path as a URI reference; a colon in its first part would make a scheme of it."""
    text = quote(os.fsencode(path), safe=_PATH_SAFE)
    return f"./{text}" if ":" in text.split("/", 1)[0] else text


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.phrase},
        "fullDescription": {"text": rule.phrase},
        "help": {"text": rule.page, "markdown": rule.page},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["security", "skills"], "security-severity": _SECURITY[rule.severity]},
    }


def _result(finding: Finding, where: dict[str, Any], index: dict[str, int], base: Path) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": _LEVELS[finding.severity],
        "message": _message(finding),
        "locations": [where],
        "partialFingerprints": {"skillrun/v1": finding.fingerprint},
        "properties": {"confidence": _PRECISION[finding.confidence], "skill": name(finding.skill or "")},
    }
    related = [place for at in finding.related if (place := _location(at, base)) is not None]
    if related:
        result["relatedLocations"] = related
    return result


def _notification(finding: Finding, index: dict[str, int]) -> dict[str, Any]:
    return {
        "descriptor": {"id": finding.rule, "index": index[finding.rule]},
        "level": _LEVELS[finding.severity],
        "message": _message(finding),
    }


def _message(finding: Finding) -> dict[str, str]:
    advice = f" ({finding.problem.help})" if finding.problem.help is not None else ""
    # `[text](place)` is a link in a message of SARIF, and text from skills must not make one.
    return {"text": _LINK.sub(r"\\\g<0>", escape(finding.problem.message + advice))}


def _location(at: At | None, base: Path) -> dict[str, Any] | None:
    """Return a place in the project, None for what lies elsewhere or nowhere."""
    if at is None or at.path is None:
        return None
    text, top = str(at.path), str(base)
    if not text.startswith(f"{top}/"):
        return None
    physical: dict[str, Any] = {
        "artifactLocation": {"uri": uri(text[len(top) + 1 :]), "uriBaseId": "%SRCROOT%"}
    }
    if at.line is not None:
        region = {"startLine": at.line}
        if at.column is not None:
            region["startColumn"] = at.column
            if at.end_column is not None and at.end_column >= at.column:
                region["endColumn"] = at.end_column
        physical["region"] = region
    return {"physicalLocation": physical}
