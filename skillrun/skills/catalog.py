"""The catalog: the skills of several roots together, and which one a key means."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.errors import UsageError
from skillrun.problem import At, Problem, error, warning

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillrun.skills.discover import Found
    from skillrun.skills.model import Skill


@dataclass(frozen=True, slots=True)
class Listed:
    """A skill in its place among others.

    `shadowed_by` is the path of the skill that has its key instead. `by_name` says whether its key
    runs it: not when it is shadowed, has no key, or is a project's that shadows an operator's.
    """

    skill: Skill
    own: bool
    shadowed_by: Path | None
    by_name: bool


@dataclass(frozen=True, slots=True)
class Catalog:
    """All skills of some roots, in the order of the roots, each physical folder once."""

    founds: tuple[Found, ...]
    listed: tuple[Listed, ...]
    problems: tuple[Problem, ...]

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The skills without their places."""
        return tuple(listed.skill for listed in self.listed)

    def by_key(self, key: str) -> Skill:
        """Return the skill that a key runs.

        Raises UsageError: `skill-unknown`, with the nearest key, or `skill-shadows-own` where a
        project's skill has taken the name of one of the operator's; its path still runs it.
        """
        winner = next((one for one in self.listed if one.skill.key == key and one.shadowed_by is None), None)
        if winner is None:
            raise UsageError(self._unknown(key))
        if not winner.by_name:
            raise UsageError(self._taken(winner))
        return winner.skill

    def _unknown(self, key: str) -> Problem:
        keys = sorted({one.skill.key for one in self.listed if one.skill.key is not None})
        near = difflib.get_close_matches(key, keys, n=1)
        named = next((one.skill for one in self.listed if one.skill.name == key), None)
        if named is not None:
            how = f"`{named.key}`" if named.key is not None else f"its path, `{named.found}`"
            help_ = f"the skill with that name is run by {how}"
        elif near:
            help_ = f"did you mean `{near[0]}`?"
        else:
            help_ = "`skillrun list` shows all there are" if keys else "no skill was found in the roots"
        return error("skill-unknown", f"there is no skill `{key}`", help=help_)

    def _taken(self, winner: Listed) -> Problem:
        skill = winner.skill
        others = [one for one in self.listed if one.own and one.skill.key == skill.key]
        message = f"`{skill.key}` names two skills: the project's `{skill.found}` and your own `{others[0].skill.found}`"
        return error(
            "skill-shadows-own", message, at=At(skill.manifest), help="give the path of the one you mean"
        )


def merge(founds: Sequence[Found]) -> Catalog:
    """Join what several roots hold. Of equal keys the earlier root's skill wins; nothing of two is mixed.

    A physical folder that several roots reach is listed once, for the first of them; it is the
    operator's if any of those roots is.
    """
    own_folders = {skill.path for found in founds if found.own for skill in found.skills}
    first: dict[Path, Skill] = {}
    for found in founds:
        for skill in found.skills:
            first.setdefault(skill.path, skill)
    winners: dict[str, Skill] = {}
    own_keys = set()
    for skill in first.values():
        if skill.key is not None:
            winners.setdefault(skill.key, skill)
            if skill.path in own_folders:
                own_keys.add(skill.key)
    listed = []
    problems: list[Problem] = [problem for found in founds for problem in found.problems]
    for skill in first.values():
        own = skill.path in own_folders
        winner = winners[skill.key] if skill.key is not None else skill
        shadowed = None if winner is skill else winner.found
        usurper = not own and skill.key in own_keys
        by_name = skill.key is not None and shadowed is None and not usurper
        listed.append(Listed(skill, own, shadowed, by_name))
        if shadowed is not None:
            message = f"`{skill.key}` is found twice: `{shadowed}` has the name, `{skill.found}` is shadowed"
            problems.append(
                warning(
                    "skill-shadowed", message, at=At(skill.manifest), help="rename one, or run it by its path"
                )
            )
        elif usurper:
            message = (
                f"the project's skill `{skill.key}` has the name of one of your own, so it is not run by name"
            )
            problems.append(
                warning("skill-shadows-own", message, at=At(skill.manifest), help="run it by its path")
            )
    return Catalog(tuple(founds), tuple(listed), tuple(problems))
