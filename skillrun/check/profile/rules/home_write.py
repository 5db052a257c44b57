"""All of a home folder may be written.

Start files, agents' settings, keys and whatever is installed per user lie in it; any one of them turns a script
into something that runs without a sandbox later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.profile.finding import Confidence, first_of_each_rule
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    targets = [f"{home}/some-new-file" for home in subject.homes]
    for target, decision, rule in first_of_each_rule(subject, "file-write-create", targets):
        message = f"`{target.rpartition('/')[0]}` may be written, a whole home folder"
        yield subject.found(
            "home-write",
            Severity.ERROR,
            message,
            change="allow the one folder that is needed",
            span=rule.span,
            confidence=Confidence.HIGH if decision.certain else Confidence.MEDIUM,
        )
