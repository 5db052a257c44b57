"""Skill roots: where skills are looked for when nobody says where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.permissions.project import repository_root
from skillrun.skills.catalog import Catalog, merge
from skillrun.skills.discover import discover

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.host import Host

_MOST_LINKS: Final = 1_000
_LINK_DEPTH: Final = 2  # as skills are linked into roots by installers
PROJECT_ROOTS: Final = ("skills", ".agents/skills", ".claude/skills")


def skill_roots(workspace: Path, host: Host, named: Sequence[Path] = ()) -> tuple[tuple[Path, bool], ...]:
    """Give the roots that were named, else the usual ones that exist, each with whether it is the operator's own."""
    if named:
        return tuple((root, False) for root in named)
    usual = [(workspace / name, False) for name in PROJECT_ROOTS]
    if host.home is not None:
        usual += [(host.home / name, True) for name in PROJECT_ROOTS]
    return tuple((root, own) for root, own in usual if os.path.isdir(root))  # noqa: PTH112 - Path.is_dir raises for EACCES


def look_through(roots: Sequence[tuple[Path, bool]], host: Host) -> Catalog:
    """Discover the skills of every root and join them."""
    return merge(
        [discover(root, own=own, home=host.home, repository=repository_root(root)) for root, own in roots]
    )


def linked_skills(roots: Sequence[Path]) -> tuple[Path, ...]:
    """Return the folders that links directly in skill roots, or one folder further down, lead to."""
    found: set[Path] = set()
    pending = [(root, 1) for root in roots]
    while pending and len(found) < _MOST_LINKS:
        folder, depth = pending.pop()
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        # By what the listing says: a folder can be listed, and nothing in it be looked at.
        for entry in listed:
            if entry.is_symlink():
                found.add(Path(entry.path).resolve())
            elif depth < _LINK_DEPTH and entry.is_dir(follow_symlinks=False):
                pending.append((Path(entry.path), depth + 1))
    return tuple(sorted(found))
