"""a description that the specification does not allow.

The description is missing, is no text, or has more than 1,024 characters; the front matter is empty.

**Why it matters.** Models choose a skill by its description; programs cut it or leave the skill out.

**What to do.** Write one or two sentences: what it does, and when to use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.check.rule import Rule
from skillrun.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.check.subject import Subject

_MOST: Final = 1024  # characters (agentskills specification)


def find(subject: Subject, project: Project) -> Iterator[Finding]:  # noqa: ARG001 - the shape of every rule
    """Give one finding a skill."""
    if subject.skill.front is None:
        return
    text = subject.skill.description
    if text is None or not text.strip():
        message, key = "the skill has no description", "missing"
    elif len(text) > _MOST:
        message, key = (
            f"the description has {len(text):,} characters, the specification allows {_MOST:,}",
            "long",
        )
    else:
        return
    yield RULE.finding(
        subject,
        message,
        key=(key,),
        at=subject.place_of("description"),
        help="say what it does and when to use it",
    )


RULE = Rule("spec-description", Severity.NOTE, __name__, one=find)
