"""Split a grant around what must be kept from a script, because Landlock rules only allow.

A rule on a folder reaches everything below it and nothing takes a part back. So a folder that holds a
kept path is not granted; its other entries are, each by itself. What that costs is real and is told:
nothing can be made, renamed or removed directly in such a folder, and entries that appear later are
not reachable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.permissions.capabilities import below
from skillrun.sandbox.policy import Access, Kept, PathRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from skillrun.sandbox.landscape import Landscape

READ, WRITE, LIST = "read", "write", "list"


def split(rule: PathRule, kept: Sequence[Kept], landscape: Landscape) -> Iterator[tuple[Path, str]]:
    """Give the paths to grant for one rule, each with `read`, `write` or `list`.

    Kept paths that do not exist cannot be kept away here; they are looked for after the run.
    """
    writes = rule.access is Access.WRITE
    barriers = [k for k in kept if k.path in landscape.spots and (writes or not k.readable)]
    yield from _walk(rule.path, WRITE if writes else READ, barriers, landscape)


def _walk(
    path: Path, access: str, barriers: Sequence[Kept], landscape: Landscape
) -> Iterator[tuple[Path, str]]:
    """Grant a path whole, or in parts when something kept lies below it."""
    at_or_above = [kept for kept in barriers if kept.path == path or below(path, kept.path)]
    if at_or_above:
        if all(kept.readable for kept in at_or_above):
            yield from _walk(path, READ, [kept for kept in barriers if not kept.readable], landscape)
        return
    inner = [kept for kept in barriers if below(kept.path, path)]
    if not inner:
        yield path, access
        return
    hidden = [kept for kept in inner if not kept.readable]
    if not hidden:
        yield path, READ
    elif not any(landscape.spots[kept.path].folder for kept in hidden):
        yield path, LIST  # reaches below too, but a file that is kept has no listing to give away
    for entry in landscape.entries[path]:
        yield from _walk(entry, access, inner, landscape)
