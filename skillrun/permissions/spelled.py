"""Spelled: a path as somebody wrote it, checked as text and expanded once."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from skillrun.permissions.place import Place
    from skillrun.problem import At


class Relative(enum.Enum):
    """What a relative path starts from when it is not a folder known at reading time."""

    CWD = "the folder the script runs in"
    FORBIDDEN = "nothing: relative paths are errors here"


Base: TypeAlias = Path | Relative

_VARIABLE = re.compile(r"\$\{(workspace|skill|scratch)\}(?=/|$)")
_GLOB = re.compile(r"[*?\[\]{}]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Spelled:
    """A path as written, with its place and what it is relative to."""

    text: str
    at: At
    base: Base = Relative.CWD

    @property
    def folder(self) -> bool:
        """Whether the spelling says folder: a slash at the end, or a last name without a suffix."""
        return self.text.endswith("/") or not Path(self.text).suffix


def path_fault(text: str, base: Base = Relative.CWD) -> tuple[str, str] | None:
    """Say what is wrong with a path as text and what to write, or None.

    Globs are errors and not names: a pattern that one system enforces and another looks up as a name
    is shown as active while it is not (cases C-09). Unknown variables are errors and not empty, since
    `$UNSET/x` would become `/x` (C-11).
    """
    plain = _VARIABLE.sub("", text, count=1) if text.startswith("${") else text
    fault = None
    if not text:
        fault = "an empty path names nothing", "leave it out, or write `.`"
    elif _CONTROL.search(text) or not _encodable(text):
        fault = "a path holds a NUL, a control character or a broken character", "write the plain name"
    elif "$" in plain:
        known = "`${workspace}`, `${skill}` and `${scratch}`, at the start"
        fault = f"`{text}` uses a variable that is not expanded here", f"only {known} are"
    elif text.startswith("~") and not text.startswith("~/"):
        fault = (
            f"`{text}` is another user's home or a bare `~`",
            "write `~/…` for your own, or the whole path",
        )
    elif _GLOB.search(plain):
        fault = f"`{text}` is a pattern", "name the folder that holds them; patterns are never expanded"
    elif base is Relative.FORBIDDEN and not text.startswith(("/", "~/", "${")):
        fault = (
            f"`{text}` is relative, and this file belongs to no folder",
            "write `${workspace}/…` or a whole path",
        )
    return fault


def expand(spelled: Spelled, place: Place, cwd: Path) -> str:
    """Return the absolute text of a checked path, not yet followed on disk. ValueError: there is no home for `~/`."""
    text = spelled.text
    if text.startswith("${"):
        name, _, rest = text[2:].partition("}")
        root = {"workspace": place.workspace, "skill": place.skill, "scratch": place.scratch}[name]
        return f"{root}{rest}"
    if text.startswith("~/"):
        if place.home is None:
            raise ValueError(f"`{text}` needs a home folder, and none is known")
        return f"{place.home}{text[1:]}"
    if text.startswith("/"):
        return text
    return f"{spelled.base if isinstance(spelled.base, Path) else cwd}/{text}"


def _encodable(text: str) -> bool:
    try:
        text.encode(
            "utf-8", "surrogateescape"
        )  # names that are not UTF-8 arrive as surrogates from the file system
    except UnicodeEncodeError:
        return False
    return True
