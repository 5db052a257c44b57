"""Baseline: findings that were there when checking began, accepted as they are; a new one still counts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from skillrun.check.engine import ordered
from skillrun.check.finding import fingerprint
from skillrun.check.rules import baseline_stale
from skillrun.check.store import read_store
from skillrun.errors import ConfigError, UsageError
from skillrun.problem import At, error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillrun.check.engine import Report

FILE_NAME: Final = "skillrun-baseline.json"
SCHEMA: Final = "skillrun.baseline/1"


@dataclass(frozen=True, slots=True)
class Accepted:
    """One accepted finding, in the words that make its fingerprint, so that a person can read the file."""

    rule: str
    skill: str | None
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is accepted, by fingerprint, and the roots that were looked through, relative to the project."""

    path: Path
    roots: tuple[str, ...]
    entries: Mapping[str, Accepted]

    def text(self) -> str:
        """Return the file's text, the same for equal entries."""
        findings = [
            {"fingerprint": known, "rule": one.rule, "skill": one.skill, "what": list(one.what)}
            for known, one in sorted(
                self.entries.items(), key=lambda item: (item[1].skill or "", item[1].rule, item[1].what)
            )
        ]
        data = {"schema": SCHEMA, "roots": list(self.roots), "findings": findings}
        return json.dumps(data, indent=2, ensure_ascii=True) + "\n"


def read_baseline(path: Path, *, at: Path | None = None) -> Baseline | None:
    """Read a baseline; None when there is none. ConfigError when it is no baseline or of another version."""
    data = read_store(path, SCHEMA, at=at)
    if data is None:
        return None
    where = at or path
    try:
        found = [(_text(one["fingerprint"]), _accepted(one)) for one in data["findings"]]
        roots = tuple(map(_text, data["roots"]))
    except (KeyError, TypeError) as wrong:
        raise _damaged(f"{type(wrong).__name__}: {wrong}", where) from None
    for known, one in found:
        # Else an entry could say one thing to a reviewer and hide another.
        if known != fingerprint(one.rule, one.skill, one.what):
            raise _damaged(f"the fingerprint {known} is not that of its own words", where)
    return Baseline(where, roots, dict(found))


def apply(report: Report, baseline: Baseline, roots: Sequence[str]) -> Report:
    """Take accepted findings out of a report, and say which entries are stale where the same roots were looked through."""
    accepted = tuple(one for one in report.findings if one.hideable and one.fingerprint in baseline.entries)
    known = {one.fingerprint for one in accepted}
    shown = [one for one in report.findings if one.fingerprint not in known]
    seen = known | {hidden.finding.fingerprint for hidden in report.ignored}
    if report.complete and tuple(roots) == baseline.roots:
        for known_as, one in baseline.entries.items():
            if known_as not in seen:
                message = f"accepted and not found any more: `{one.rule}` in `{one.skill or 'the project'}`"
                stale = baseline_stale.RULE.finding(
                    None,
                    message,
                    key=(known_as,),
                    at=At(baseline.path),
                    help="`skillrun check --write-baseline`",
                )
                shown.append(replace(stale, hideable=False))
    return replace(report, findings=ordered(shown), accepted=accepted)


def baseline_of(report: Report, path: Path, roots: Sequence[str], before: Baseline | None) -> Baseline:
    """Return a baseline of everything that was found. UsageError where not everything was looked at."""
    if report.missing or not report.subjects or not report.complete:
        unread = next((s.label for s in report.subjects if s.skill.front is None), None)
        reason = (
            f"`{unread}` can't be read, so what it hides is not known"
            if unread
            else "not everything was looked at"
        )
        raise UsageError(
            error(
                "baseline-partial",
                f"no baseline was written: {reason}",
                help="mend that first; `skillrun check` shows it",
            )
        )
    if before is not None and before.roots != tuple(roots):
        looked = ", ".join(f"`{root}`" for root in before.roots)
        message = (
            f"no baseline was written: `{path.name}` is about {looked}, and other roots were looked through"
        )
        raise UsageError(
            error("baseline-partial", message, help="name the same roots, or remove the file first")
        )
    entries = {
        one.fingerprint: Accepted(one.rule, one.skill, one.key)
        for one in (*report.findings, *report.accepted)
        if one.hideable
    }
    return Baseline(path, tuple(roots), entries)


def _damaged(reason: str, where: Path) -> ConfigError:
    message = f"the baseline is damaged: {reason}"
    return ConfigError(error("baseline-damaged", message, at=At(where), help="write it anew"))


def _accepted(data: Any) -> Accepted:
    skill = data["skill"]
    return Accepted(
        _text(data["rule"]), None if skill is None else _text(skill), tuple(map(_text, data["what"]))
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is expected")
    return value
