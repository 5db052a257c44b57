"""Engine: run the rules over a project, then take out what was accepted."""

from __future__ import annotations

import enum
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from skillrun.check import ignores
from skillrun.check.deeper import too_deep
from skillrun.check.registry import RULES
from skillrun.check.rules import policy_changed
from skillrun.check.subject import Subject
from skillrun.check.told import told
from skillrun.problem import Severity
from skillrun.skills.discover import RootStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillrun.check.finding import Finding
    from skillrun.check.ignores import Belief
    from skillrun.check.project import Project
    from skillrun.problem import At
    from skillrun.skills.catalog import Catalog

NEVER_HIDDEN: Final = frozenset({
    "policy-changed", "not-locked", "lock-permission", "lock-file", "lock-stale", "not-checked", "skill-unreadable",
    "baseline-stale", "ignore-without-reason", "ignore-unused",
})  # fmt: skip
"""Rules whose findings no ignore and no baseline covers: they are about what was accepted, or about what was not seen."""
_ORDER: Final = {severity: number for number, severity in enumerate(Severity)}


class Verdict(enum.Enum):
    """What a check comes to; the value is the exit code (DESIGN 11)."""

    CLEAN = 0
    FINDINGS = 1
    NOTHING = 3


@dataclass(frozen=True, slots=True)
class Hidden:
    """A finding that an ignore hides, with its reason."""

    finding: Finding
    reason: str
    at: At


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found. `accepted` are findings that the baseline lists."""

    subjects: tuple[Subject, ...]
    findings: tuple[Finding, ...]
    ignored: tuple[Hidden, ...] = ()
    accepted: tuple[Finding, ...] = ()
    complete: bool = True
    missing: bool = False

    @property
    def scripts(self) -> int:
        """How many scripts were looked at."""
        return sum(len(subject.skill.scripts) for subject in self.subjects)

    def verdict(self, fail_on: Severity = Severity.WARNING) -> Verdict:
        """Return what it comes to: findings count from `fail_on` upwards; nothing checked is never clean."""
        if not self.subjects or self.missing:
            return Verdict.NOTHING
        counted = any(_ORDER[found.severity] <= _ORDER[fail_on] for found in self.findings)
        return Verdict.FINDINGS if counted else Verdict.CLEAN


def subjects_of(catalog: Catalog, project: Project) -> tuple[Subject, ...]:
    """Make the subjects of a catalog, in its order."""
    return tuple(Subject(listed.skill, project, by_name=listed.by_name) for listed in catalog.listed)


def check(
    catalog: Catalog,
    project: Project,
    *,
    subjects: Sequence[Subject] | None = None,
    more: Sequence[Finding] = (),
    belief: Belief | None = None,
) -> Report:
    """Check every skill of a catalog.

    `subjects` are those of the catalog where the caller has made them. `more` are findings from elsewhere: the
    lock, the policy. `belief` says which ignores count; the others are findings themselves.
    """
    subjects = subjects_of(catalog, project) if subjects is None else tuple(subjects)
    found: list[Finding] = [one for problem in catalog.problems for one in told(problem, None, project)]
    found += too_deep(catalog, project)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the compiler thinks of a stranger's style is nobody's concern
        for subject in subjects:
            found += [one for problem in subject.problems for one in told(problem, subject, project)]
            for rule in RULES:
                if rule.one is not None:
                    found += rule.one(subject, project)
    for rule in RULES:
        if rule.all is not None:
            found += rule.all(subjects, project)
    shown, hidden = _without_ignored(merged([*found, *more]), subjects, belief)
    statuses = {one.status for one in catalog.founds}
    return Report(
        subjects=tuple(subjects),
        findings=ordered(shown),
        ignored=tuple(hidden),
        complete=statuses <= {RootStatus.OK} and all(subject.skill.front is not None for subject in subjects),
        missing=bool(statuses & {RootStatus.MISSING, RootStatus.NOT_A_FOLDER, RootStatus.UNREADABLE}),
    )


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Join findings with one fingerprint: the first stays, the places of the others are related."""
    first: dict[str, Finding] = {}
    for finding in findings:
        finding = replace(finding, hideable=finding.rule not in NEVER_HIDDEN)  # noqa: PLW2901 - the same finding, complete
        known = first.setdefault(finding.fingerprint, finding)
        at = finding.problem.at
        if known is not finding and at is not None and at != known.problem.at and at not in known.related:
            first[finding.fingerprint] = replace(known, related=(*known.related, at))
    return list(first.values())


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put findings in the order of files and lines, so that the same tree gives the same report."""

    def place(finding: Finding) -> tuple[str, int, int, str, str]:
        at = finding.problem.at
        path = str(finding.path or "")
        return path, (at and at.line) or 0, (at and at.column) or 0, finding.rule, finding.fingerprint

    return tuple(sorted(findings, key=place))


def _without_ignored(
    findings: list[Finding], subjects: Sequence[Subject], belief: Belief | None
) -> tuple[list[Finding], list[Hidden]]:
    shown, hidden, more = list(findings), [], []
    for subject, ignore in ignores.collect(subjects):
        fault = ignores.wrong(subject, ignore)
        if fault is not None:
            more.append(fault)
            continue
        covered = [finding for finding in shown if ignores.covers(ignore, finding, subject)]
        if belief is not None and not belief.knows(subject.label, ignore):
            message = f"this change adds an ignore of `{ignore.rule}`, which does not count before somebody has merged it"
            more.append(
                policy_changed.RULE.finding(
                    subject,
                    message,
                    key=("ignore", ignore.rule, ignore.text),
                    at=ignore.at,
                    help=f"the reason given is: {ignore.reason}",
                )
            )
            continue
        if belief is not None:
            # The same comment can come to hide another thing, such as another host on the same line.
            covered = [finding for finding in covered if belief.hides(finding)]
        if not covered:
            more.append(ignores.unused(subject, ignore))
        shown = [finding for finding in shown if finding not in covered]
        hidden += [Hidden(finding, ignore.reason, ignore.at) for finding in covered]
    return merged([*shown, *more]), hidden
