"""Look which of the system's paths are there, once for each launcher."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillrun.sandbox.backend import SystemPlace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class System:
    """The system's paths: places to grant, and link nodes that lead into one of them."""

    places: tuple[SystemPlace, ...] = ()
    links: tuple[tuple[str, str], ...] = ()


def present(table: Mapping[str, Any]) -> System:
    """Sort the paths of `profiles/linux/system.yaml` that exist.

    `/bin` is a link to `usr/bin` on most systems: a rule on `/usr` covers it, and in a root of its own it
    is a link again. A folder with exceptions that hold something is taken entry by entry, without them.
    """
    found: dict[str, SystemPlace] = {}
    for kind in ("read", "device"):
        for line in table[kind]:
            for path in _parts(line["path"], line.get("except", ())):
                found[path] = SystemPlace(
                    path, device=kind == "device", network=line.get("when") == "network"
                )
    real = {path: os.path.realpath(path) for path in found}
    folders = {path for path in found if real[path] == path and os.path.isdir(path)}  # noqa: PTH112 - words of a table
    inner = {
        path for path in found if real[path] != path and any(_inside(real[path], top) for top in folders)
    }
    links = tuple((path, os.readlink(path)) for path in sorted(inner) if os.path.islink(path))  # noqa: PTH114, PTH115 - see above
    return System(tuple(place for path, place in found.items() if path not in inner), links)


def _parts(path: str, exceptions: Sequence[str]) -> Iterator[str]:
    """Give a path if it exists, or what is in it without the exceptions if one of those holds something."""
    if not os.path.exists(path):  # noqa: PTH110 - the words of the table are strings
        return
    if not any(_holds(f"{path}/{name}") for name in exceptions):
        yield path
        return
    for name in sorted(os.listdir(path)):  # noqa: PTH208 - names
        below = [rest for first, _, rest in (e.partition("/") for e in exceptions) if first == name]
        if "" not in below:
            yield from _parts(f"{path}/{name}", below)


def _holds(path: str) -> bool:
    """Tell whether a folder has anything in it."""
    try:
        return bool(os.listdir(path))  # noqa: PTH208 - only asked whether there is any
    except OSError:
        return False


def _inside(path: str, top: str) -> bool:
    """Tell whether a path is another one or lies in it."""
    return path == top or path.startswith(top + "/")
