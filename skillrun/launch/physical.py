"""Physical: where a path leads that a script has named, without harm to the process that looks.

The script chose the path, and the links on its way in all that it could write. So the walk is bounded as the
kernel's is, never goes through /proc, where the script's own links would be this process's, and never into what is
mounted only when somebody asks for it. Names are looked up; nothing is opened.
"""

from __future__ import annotations

import codecs
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LINKS: Final = 40  # the kernel's own bound (path_resolution(7))
_STEPS: Final = 1000  # names on one way, those of the links included
_PROC: Final = "/proc"
_MOUNTS: Final = "/proc/self/mountinfo"  # proc(5)


@dataclass(frozen=True, slots=True)
class Walk:
    """Follows paths on this host; `closed` are the physical folders that it does not go into."""

    closed: frozenset[str]

    @classmethod
    def here(cls) -> Walk:
        """Look up what is closed on this host now."""
        return cls(frozenset({_PROC, *_automounts()}))

    def to(self, path: str, *, follows: bool = True) -> Path | None:
        """Return the physical path, of what is not there too; None when it is closed, or too far.

        `follows` says whether a link in the last place is followed.
        """
        here, links, steps = "", 0, 0
        rest = _parts(path)
        while rest:
            name = rest.pop()
            steps += 1
            if steps > _STEPS:
                return None
            if name == "..":
                here = here.rpartition("/")[0]
                continue
            node = f"{here}/{name}"
            if node in self.closed:
                return None
            target = _target(node) if rest or follows else None
            if target is None:
                here = node
                continue
            links += 1
            if links > _LINKS:
                return None
            here = "" if target.startswith("/") else here
            rest += _parts(target)
        return Path(here or "/")


def _target(node: str) -> str | None:
    """Return what a link says, None when it is none."""
    try:
        return os.readlink(node) if stat.S_ISLNK(os.lstat(node).st_mode) else None  # noqa: PTH115 - a string a step
    except (OSError, ValueError):
        return None


def _parts(path: str) -> list[str]:
    return [part for part in reversed(path.split("/")) if part not in {"", "."}]


def _automounts() -> list[str]:
    """List where asking for a name mounts something, such as another machine's folder by the machine's name."""
    try:
        lines = Path(_MOUNTS).read_bytes().splitlines()
    except OSError:
        return []
    found = [line.split(b" ") for line in lines if b" - autofs " in line]
    return [os.fsdecode(codecs.escape_decode(fields[4])[0]) for fields in found]
