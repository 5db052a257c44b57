"""Ignores: comments that hide one finding, each with its reason; counted and shown, never silent.

`# skillrun: ignore[RULE] REASON`, behind a line or alone on the line above it, in SKILL.md or in a script.
At the `name` of a skill it hides what belongs to the skill as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.check.registry import BY_NAME
from skillrun.check.rules import ignore_unused, ignore_without_reason
from skillrun.problem import At

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from skillrun.check.finding import Finding
    from skillrun.check.subject import Subject

MARK: Final = "skillrun: ignore["
_COMMENT = re.compile(
    r"(?P<mark>#|//|<!--|/\*|--)\s*skillrun: ignore\[(?P<rules>[^\]\n]*)\](?P<reason>.*)$", re.MULTILINE
)
_END = re.compile(r"\s*(?:-->|\*/)?\s*$")


@dataclass(frozen=True, slots=True)
class Ignore:
    """One comment for one rule. `line` is the one that it covers, `text` what stands there without the comment."""

    path: Path
    rule: str
    reason: str
    at: At
    line: int
    text: str

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same ignore in another version of the file: the rule and the line that it covers."""
        return self.rule, self.text


@dataclass(frozen=True, slots=True)
class Belief:
    """Which ignores count: those that another version has, for the findings that they hid there."""

    known: frozenset[tuple[str, str, str]]
    hidden: frozenset[str]

    def knows(self, label: str, ignore: Ignore) -> bool:
        """Whether the other version has the same comment in the same file."""
        return (label, *ignore.key) in self.known

    def hides(self, finding: Finding) -> bool:
        """Whether an ignore of the other version hid the same finding."""
        return finding.fingerprint in self.hidden


def ignores_in(text: str, path: Path) -> Iterator[Ignore]:
    """Find the ignores of one file."""
    if MARK not in text:
        return
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        found = _COMMENT.search(line)
        if found is None:
            continue
        covered = number
        if not line[: found.start()].strip():
            covered = next(
                (
                    n
                    for n in range(number + 1, len(lines) + 1)
                    if lines[n - 1].strip() and MARK not in lines[n - 1]
                ),
                number,
            )
        whole = _COMMENT.sub("", lines[covered - 1]).strip()
        reason = _END.sub("", found["reason"]).strip(" :,")
        at = At(path, number, found.start() + 1, len(line.rstrip()) + 1, excerpt=line)
        for rule in found["rules"].split(","):
            yield Ignore(path, rule.strip(), reason, at, covered, whole)


def collect(subjects: Iterable[Subject]) -> list[tuple[Subject, Ignore]]:
    """Find the ignores of all skills, in their SKILL.md and their scripts."""
    found = []
    for subject in subjects:
        found += [(subject, ignore) for ignore in ignores_in(subject.manifest_text, subject.skill.manifest)]
        for script, reading in subject.readings:
            found += [(subject, ignore) for ignore in ignores_in(reading.text, script.path)]
    return found


def wrong(subject: Subject, ignore: Ignore) -> Finding | None:
    """Say that an ignore has no reason or no rule; it hides nothing then."""
    if ignore.rule not in BY_NAME:
        message, help_ = (
            f"an ignore names the rule `{ignore.rule}`, which there is not",
            "`skillrun rule` lists the rules",
        )
    elif not ignore.reason:
        message, help_ = f"an ignore of `{ignore.rule}` has no reason", "write it behind the bracket"
    else:
        return None
    return ignore_without_reason.RULE.finding(
        subject, message, key=(ignore.rule, ignore.text), at=ignore.at, help=help_
    )


def unused(subject: Subject, ignore: Ignore) -> Finding:
    """Say that an ignore hides nothing."""
    message = f"an ignore of `{ignore.rule}` hides nothing"
    return ignore_unused.RULE.finding(
        subject, message, key=(ignore.rule, ignore.text), at=ignore.at, help="take it out"
    )


def covers(ignore: Ignore, finding: Finding, subject: Subject) -> bool:
    """Whether an ignore of a subject hides a finding."""
    if not finding.hideable or finding.rule != ignore.rule or finding.skill != subject.label:
        return False
    at = finding.problem.at
    if at is not None and at.path == ignore.path and at.line is not None:
        return at.line == ignore.line
    # What has no line belongs to the skill as a whole.
    return (
        ignore.path == subject.skill.manifest
        and ignore.line == subject.at.line
        and (at is None or at.line is None)
    )
