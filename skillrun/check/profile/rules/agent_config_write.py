"""The settings of an agent or editor may be written, and they name commands that run outside the sandbox.

In CVE-2026-25725 a settings file that was not there yet could be made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.profile.finding import Confidence, first_of_each_rule
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.profile.finding import Finding, Subject

_NAMES: Final = (
    ".claude/settings.json",
    ".claude.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".cursor/mcp.json",
    ".mcp.json",
    "Library/Application Support/Code/User/settings.json",
)


def find(subject: Subject) -> Iterator[Finding]:
    """Find them."""
    targets = [f"{home}/{name}" for home in subject.homes for name in _NAMES]
    for target, decision, rule in first_of_each_rule(subject, "file-write-create", targets):
        message = f"`{target}` may be written, and names commands that run outside the sandbox"
        yield subject.found(
            "agent-config-write",
            Severity.ERROR,
            message,
            change="deny `file-write*` and `file-write-unlink` there, after every allow",
            span=rule.span,
            confidence=Confidence.HIGH if decision.certain else Confidence.MEDIUM,
        )
