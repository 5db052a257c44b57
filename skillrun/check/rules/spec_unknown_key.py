"""a key that the specification does not know.

The front matter has top-level keys other than `name`, `description`, `license`, `compatibility`, `metadata` and
`allowed-tools`. skillrun's own five are not counted.

**Why it matters.** Strict validators refuse the whole skill for it. Everybody else reads past the key.

**What to do.** Move it below `metadata`, which is there for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.rule import Rule
from skillrun.permissions.request import TOP_KEYS
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject

_KNOWN: Final = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools", *TOP_KEYS}
)
_SHOWN: Final = 8  # keys named in one finding


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give one finding a skill, with all such keys."""
    unknown = [entry for entry in subject.skill.front or () if entry.key not in _KNOWN]
    if unknown:
        names = ", ".join(f"`{entry.key}`" for entry in unknown[:_SHOWN]) + (
            ", …" if len(unknown) > _SHOWN else ""
        )
        yield RULE.finding(
            subject,
            f"the specification does not know {names} at top level",
            key=tuple(sorted(entry.key for entry in unknown)),
            at=unknown[0].at,
            help="move it below `metadata`",
        )


RULE = Rule("spec-unknown-key", Severity.NOTE, __name__, one=find)
