"""Look which of the system's paths are there, once for each launcher."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def present(table: Mapping[str, Any]) -> frozenset[str]:
    """Return the paths of `profiles/linux/system.yaml` that exist, less those that lie in another one.

    `/bin` is a link to `usr/bin` on most systems: a rule on `/usr` covers it.
    """
    found = {
        line["path"]: os.path.realpath(line["path"])
        for kind in ("read", "device")
        for line in table[kind]
        if os.path.exists(line["path"])  # noqa: PTH110 - the words of the table are strings
    }
    folders = {real for path, real in found.items() if path == real and os.path.isdir(real)}  # noqa: PTH112 - see above
    return frozenset(
        path
        for path, real in found.items()
        if path == real or not any(real.startswith(f + "/") for f in folders)
    )
