"""A file may be written that a shell, launchd or git runs later, outside the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.profile.finding import Confidence, first_of_each_rule
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject

_NAMES: Final = (
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".gitconfig",
    ".config/fish/config.fish",
    "Library/LaunchAgents/x.plist",
)


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    targets = [f"{home}/{name}" for home in subject.homes for name in _NAMES]
    for target, decision, rule in first_of_each_rule(subject, "file-write-create", targets):
        message = f"`{target}` may be written, and is run outside the sandbox later"
        yield subject.found(
            "start-file-write",
            Severity.ERROR,
            message,
            change="deny `file-write*` and `file-write-unlink` there, after every allow",
            span=rule.span,
            confidence=Confidence.HIGH if decision.certain else Confidence.MEDIUM,
        )
