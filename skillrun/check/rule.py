"""Rule: what every rule of `check` has: a name, a page, and a function that finds."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.check.finding import Finding
from skillrun.check.static.use import Confidence
from skillrun.problem import Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from skillrun.check.project import Project
    from skillrun.check.subject import Subject
    from skillrun.problem import At


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `module` is where it is written: its docstring is the page that `skillrun rule` shows.

    `one` looks at one skill, `all` at the whole collection; a rule has one of them, or none when its
    findings are made elsewhere (lock, baseline, policy).
    """

    name: str
    severity: Severity
    module: str
    one: Callable[[Subject, Project], Iterable[Finding]] | None = None
    all: Callable[[Sequence[Subject], Project], Iterable[Finding]] | None = None

    @property
    def page(self) -> str:
        """The page, Markdown. Its first line is the rule in one phrase."""
        return (sys.modules[self.module].__doc__ or "").strip() + "\n"

    @property
    def phrase(self) -> str:
        """The rule in one phrase, without a full stop."""
        return self.page.splitlines()[0].rstrip(".")

    def finding(
        self,
        subject: Subject | None,
        message: str,
        *,
        key: Sequence[str],
        at: At | None,
        help: str | None = None,  # noqa: A002 - the word of the JSON shape
        confidence: Confidence = Confidence.HIGH,
        related: Iterable[At] = (),
        severity: Severity | None = None,
    ) -> Finding:
        """Make a finding of this rule."""
        problem = Problem(self.name, severity or self.severity, message, help, at)
        label = None if subject is None else subject.label
        return Finding(problem, label, tuple(key), confidence, tuple(related))
