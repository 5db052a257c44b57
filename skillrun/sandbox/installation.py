"""skillrun's own installation: what a script must not change, or the next run would be its own."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from skillrun import resources


@functools.cache
def own_code() -> tuple[tuple[Path, str], ...]:
    """Name the package, its data, and the prefixes of the Python that runs it."""
    code = (resources.PACKAGE, resources.folder("profiles"), Path(sys.prefix), Path(sys.base_prefix))
    return tuple((path.resolve(), "skillrun runs from it") for path in code if path.resolve() != Path("/"))


def search_folders(search: str) -> tuple[tuple[Path, str], ...]:
    """Name the folders that modules and programs are found in: this Python's path, and the caller's PATH."""
    named = [(entry, "skillrun's modules are found there") for entry in sys.path]
    named += [(entry, "programs are found there") for entry in search.split(":")]
    found = {Path(entry).resolve(): why for entry, why in named if entry.startswith("/")}
    return tuple((path, why) for path, why in found.items() if path != Path("/"))
