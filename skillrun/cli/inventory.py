"""Inventory: what `list` and `show` say about skills, put together from the library's own answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.permissions.request import read_request
from skillrun.report.listing import Listing, Row

if TYPE_CHECKING:
    from skillrun.skills.catalog import Catalog, Listed
    from skillrun.skills.model import Skill


def listing(catalog: Catalog) -> Listing:
    """List a catalog."""
    return Listing(catalog.founds, tuple(_listed(listed) for listed in catalog.listed), catalog.problems)


def row(skill: Skill, listed: Listed | None = None) -> Row:
    """Describe one skill; `listed` is its place among others, where there are others."""
    request = read_request(skill)
    about_scripts = (problem for script in skill.scripts for problem in script.problems)
    problems = tuple(dict.fromkeys((*skill.problems, *request.problems, *about_scripts)))
    return Row(
        skill=skill,
        request=request,
        valid=skill.valid and request.valid,
        by_name=skill.key is not None if listed is None else listed.by_name,
        shadowed_by=None if listed is None else listed.shadowed_by,
        problems=problems,
    )


def first_script(skill: Skill) -> str | None:
    """Name the script that stands for all where none is named: what a skill may have does not depend on it."""
    startable = [script for script in skill.scripts if script.command is not None]
    tools = [script for script in startable if script.tool]
    return next((script.name for script in (*tools, *startable)), None)


def _listed(listed: Listed) -> Row:
    return row(listed.skill, listed)
