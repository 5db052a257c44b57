"""Deeper: skills that lie too far below a root to be found, which a check must not pass over in silence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.check.rules import not_checked
from skillrun.problem import At
from skillrun.skills.discover import DEPTH
from skillrun.skills.skill import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillrun.check.finding import Finding
    from skillrun.check.project import Project
    from skillrun.skills.catalog import Catalog

_MOST_FOLDERS: Final = 20_000
_SKIPPED: Final = frozenset({".git", "node_modules", ".venv", "__pycache__"})  # as discovery does


def too_deep(catalog: Catalog, project: Project) -> Iterator[Finding]:
    """Give each SKILL.md below the last level that discovery looks at, links not followed."""
    left = _MOST_FOLDERS
    for top in (folder for found in catalog.founds for folder in found.deeper):
        for folder, folders, files in os.walk(top):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED)
            left -= 1
            if left < 0:
                return
            if MANIFEST in files and Path(folder) != top:
                manifest = Path(folder, MANIFEST)
                yield not_checked.RULE.finding(
                    None,
                    f"a skill lies more than {DEPTH} folders below its root, so it was not looked at",
                    key=(project.label(manifest),),
                    at=At(manifest),
                    help=f"name `{project.label(top)}` as a root as well",
                )
