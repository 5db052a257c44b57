"""Skill roots: where skills are looked for when nobody says where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillrun.permissions.project import repository_root
from skillrun.skills.catalog import Catalog, merge
from skillrun.skills.discover import discover

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillrun.host import Host

PROJECT_ROOTS: Final = ("skills", ".agents/skills", ".claude/skills")


def skill_roots(workspace: Path, host: Host, named: Sequence[Path] = ()) -> tuple[tuple[Path, bool], ...]:
    """Give the roots that were named, else the usual ones that exist, each with whether it is the operator's own."""
    if named:
        return tuple((root, False) for root in named)
    usual = [(workspace / name, False) for name in PROJECT_ROOTS]
    if host.home is not None:
        usual += [(host.home / name, True) for name in PROJECT_ROOTS]
    return tuple((root, own) for root, own in usual if root.is_dir())


def look_through(roots: Sequence[tuple[Path, bool]], host: Host) -> Catalog:
    """Discover the skills of every root and join them."""
    return merge(
        [discover(root, own=own, home=host.home, repository=repository_root(root)) for root, own in roots]
    )
