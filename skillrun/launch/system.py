"""Look which of the system's paths are there, once for each launcher."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class System:
    """The system's paths: places to grant, and link nodes that lead into one of them."""

    places: frozenset[str] = frozenset()
    links: tuple[tuple[str, str], ...] = ()


def present(table: Mapping[str, Any]) -> System:
    """Sort the paths of `profiles/linux/system.yaml` that exist.

    `/bin` is a link to `usr/bin` on most systems: a rule on `/usr` covers it, and in a root of its own it
    is a link again.
    """
    found = {
        line["path"]: os.path.realpath(line["path"])
        for kind in ("read", "device")
        for line in table[kind]
        if os.path.exists(line["path"])  # noqa: PTH110 - the words of the table are strings
    }
    folders = {real for path, real in found.items() if path == real and os.path.isdir(real)}  # noqa: PTH112 - see above
    inner = {
        path
        for path, real in found.items()
        if path != real and any(real.startswith(f + "/") for f in folders)
    }
    links = tuple((path, os.readlink(path)) for path in sorted(inner) if os.path.islink(path))  # noqa: PTH114, PTH115 - see above
    return System(frozenset(found.keys() - inner), links)
