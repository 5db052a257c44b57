"""Told: what reading and deciding have said already, as findings of the rule that it belongs to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from skillrun.check.rules import (
    ceiling_idle,
    link_out,
    near_key,
    nested_skill,
    not_checked,
    other_problem,
    request_invalid,
    request_unread,
    same_key,
    skill_unreadable,
    spec_description,
    spec_name,
)
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.rule import Rule
    from skillrun.check.subject import Subject
    from skillrun.problem import Problem

# By the beginning of the problem's own name, the first that fits. None: a rule of `check` says it with more.
_RULES: Final[tuple[tuple[str, Rule | None], ...]] = (
    ("script-windows-line-end", None),
    ("script-interpreter-line", None),
    ("script-no-interpreter", None),
    ("script-empty", None),
    ("script-link-", None),
    ("script-unreadable", None),
    ("scripts-", not_checked.RULE),
    ("folder-", not_checked.RULE),
    ("root-", not_checked.RULE),
    ("digest-", not_checked.RULE),
    ("file-", not_checked.RULE),
    ("skill-link-", link_out.RULE),
    ("skill-shadow", same_key.RULE),
    ("skill-nested", nested_skill.RULE),
    ("skill-entry-", ceiling_idle.RULE),
    ("ceiling-", ceiling_idle.RULE),
    ("request-near-key", near_key.RULE),
    ("request-misplaced", request_unread.RULE),
    ("request-not-ours", request_unread.RULE),
    ("request-", request_invalid.RULE),
    ("name-", spec_name.RULE),
    ("front-matter-name", spec_name.RULE),
    ("skill-", skill_unreadable.RULE),
    ("manifest-", skill_unreadable.RULE),
    ("front-matter-", skill_unreadable.RULE),
)
_SPECIFICATION: Final = frozenset({spec_name.RULE, spec_description.RULE, same_key.RULE})
_QUOTED = re.compile(r"`([^`]*)`")


def told(problem: Problem, subject: Subject | None, project: Project) -> Iterator[Finding]:
    """Give the finding of one problem, none where a rule of its own says it."""
    rule = next((rule for start, rule in _RULES if problem.rule.startswith(start)), other_problem.RULE)
    if rule is None:
        return
    if problem.rule == "front-matter-empty" and problem.severity is Severity.WARNING:
        return  # a description that is missing, which has its rule
    if rule is skill_unreadable.RULE and problem.severity is not Severity.ERROR:
        rule = other_problem.RULE
    # Paths relative to the project: a finding and its fingerprint are the same on every machine.
    message = problem.message.replace(f"{project.folder}/", "")
    quoted = _QUOTED.search(message)
    key = (problem.rule, quoted[1] if quoted is not None else "")
    severity = Severity.NOTE if rule in _SPECIFICATION else problem.severity
    owner = (
        None if rule is ceiling_idle.RULE else subject
    )  # a ceiling is nobody's own: said once, not for each skill
    yield rule.finding(owner, message, key=key, at=problem.at, help=problem.help, severity=severity)
