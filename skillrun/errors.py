"""What the library raises. It never raises for what a script does.

SkillrunError            carries problems, the first one is the headline
  ├─ UsageError          the call is wrong: no such skill, a workspace that is refused
  ├─ ConfigError         the operator's or a project's skillrun.yaml is wrong
  ├─ SkillError          the skill is wrong: its SKILL.md cannot be read, its script leaves the folder
  ├─ AdmissionError      too many runs are under way and wait, or the run was withdrawn before its turn
  ├─ StoreError          the file of the conversations can't be used (skillrun.conversation.store)
  └─ ModelError          a model's reply is none (skillrun.conversation.models)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillrun.problem import Problem


class SkillrunError(Exception):
    """Something that stops, told as problems that a person can act on."""

    def __init__(self, *problems: Problem) -> None:
        if not problems:
            raise ValueError("an error needs at least one problem")
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems

    def __reduce__(self) -> tuple[type[SkillrunError], tuple[Problem, ...]]:
        """Pickle with the problems: what the base class knows is the text alone."""
        return type(self), self.problems

    @property
    def problem(self) -> Problem:
        """The headline: the first problem."""
        return self.problems[0]


class UsageError(SkillrunError):
    """The call itself is wrong."""


class ConfigError(SkillrunError):
    """A configuration file is wrong."""


class SkillError(SkillrunError):
    """A skill is wrong."""


class AdmissionError(SkillrunError):
    """A run was not let in; nothing of it was started."""
