"""Access by argument: a call names one file, and its parameter declares what the script may do with it (DESIGN 10).

The model chooses the path, so nothing about it is trusted: it is taken as plain text, looked at beneath a root of
the ceiling without following any link, and tied to the device and inode that lay there.
"""

from __future__ import annotations

import functools
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.errors import UsageError
from skillrun.permissions.capabilities import inside
from skillrun.problem import At, error
from skillrun.resources import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.permissions.bounds import Root
    from skillrun.permissions.grant import Grant

_LONGEST: Final = 4096  # PATH_MAX on Linux
# What no file of may be written, whatever it is called: a `.git` file names a repository, with its hooks.
_WHOLE: Final = {".git": "git uses it", "SKILL.md": "instructions that an agent follows"}
_MARKS: Final = (
    (("SKILL.md",), "it belongs to a skill"),
    (("HEAD", "objects", "refs"), "git takes the folder for a repository"),
    (("pyvenv.cfg",), "an environment whose programs run unconfined later"),
)
_FOLDER: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


@dataclass(frozen=True, slots=True)
class NamedPath:
    """What one argument of a call names, as the caller wrote it; `write` is the access that the parameter declares."""

    parameter: str
    text: str
    write: bool = False


@dataclass(frozen=True, slots=True)
class Pin:
    """A file that an argument named, as it lay there when it was decided about."""

    path: Path
    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A named file that may be granted. `pin` is None for one that is to be made; `root` is the line that allows it."""

    named: NamedPath
    path: Path
    root: Root
    at: At
    pin: Pin | None


def open_named(named: NamedPath, roots: Sequence[Root], cwd: Path) -> Opened:
    """Find the file that an argument names, beneath one of `roots` and without following a link.

    `roots` are physical, those for writing where the access is to write. Raises UsageError with the rule
    `argument-access`; its message names the parameter and never what else there is.
    """
    path = _plain(named, cwd)
    root = next((root for root in roots if inside(path, root.path)), None)
    if root is None:
        raise _fault(named, "lies where this tool may not " + ("write" if named.write else "read"))
    if named.write and (why := protected(path) or _inside_of(path, root.path)) is not None:
        raise _fault(named, f"is a file that something runs or obeys later ({why})")
    found = _look(path, root.path, named)
    at = At(flag=f"argument {named.parameter}")
    if found is None:
        return Opened(named, path, root, at, None)
    return Opened(named, path, root, at, Pin(path, found.st_dev, found.st_ino))


def check_kept(opened: Sequence[Opened], grant: Grant) -> None:
    """Raise UsageError for a named file that a deny line or a shipped secret name keeps from every script."""
    for one in opened:
        allowed = grant.allows_write(one.path) if one.named.write else grant.allows_read(one.path)
        if not allowed:
            raise _fault(one.named, "is kept from every script")


@functools.cache
def _protected_names() -> tuple[tuple[tuple[str, ...], str], ...]:
    lines = table("protected")["names"]
    return tuple((tuple(line["name"].strip("/").split("/")), line["why"]) for line in lines)


def protected(path: Path) -> str | None:
    """Say why a path may never be written through an argument, by `profiles/protected.yaml`; None when it may.

    Any part counts and letter case does not: what protects `.git/hooks` protects everything in it.
    """
    parts = tuple(part.casefold() for part in path.parts)
    for part, why in _WHOLE.items():
        if part.casefold() in parts:
            return why
    for name, why in _protected_names():
        folded = tuple(part.casefold() for part in name)
        if any(parts[place : place + len(folded)] == folded for place in range(len(parts))):
            return why
    return None


def _inside_of(path: Path, root: Path) -> str | None:
    """Say why a path lies in a folder of which nothing may be written through an argument, from the root down.

    A run that is given such a folder has parts of it kept; one file of it has no parts, so all of them count.
    """
    for folder in path.parents:
        if not inside(folder, root):
            break
        for names, why in _MARKS:
            if all(os.path.lexists(folder / name) for name in names):
                return why
    return None


def _plain(named: NamedPath, cwd: Path) -> Path:
    text = named.text
    if not text or "\0" in text or len(text) > _LONGEST:
        raise _fault(named, "is no path")
    if ".." in text.split("/"):
        # The script opens what is written, and a folder that is only passed through is not there for it.
        raise _fault(named, "has `..` in it; write the path without")
    # Nothing is expanded: `~` and `$HOME` are names of files here.
    return Path(os.path.normpath(text if text.startswith("/") else f"{cwd}/{text}"))


def _look(path: Path, root: Path, named: NamedPath) -> os.stat_result | None:
    """Walk from a root to a file, each folder by descriptor. Return None for a file to write that is not there."""
    folder = _open(root, None, named)
    try:
        for name in path.relative_to(root).parts[:-1]:
            inner = _open(Path(name), folder, named)
            os.close(folder)
            folder = inner
        try:
            found = (
                os.stat(path.name, dir_fd=folder, follow_symlinks=False) if path != root else os.fstat(folder)
            )
        except FileNotFoundError:
            if named.write:
                return None
            raise _fault(named, "is not there") from None
        except OSError as wrong:
            raise _fault(named, f"can't be looked at: {wrong.strerror}") from None
    finally:
        os.close(folder)
    return _checked(found, named)


def _open(path: Path, above: int | None, named: NamedPath) -> int:
    try:
        return os.open(path, _FOLDER, dir_fd=above)
    except FileNotFoundError:
        raise _fault(named, "is not there") from None
    except OSError:
        # A link on the way is an error and not a detour: whoever made it chose where it leads.
        raise _fault(named, "lies behind a link, or behind something that is no folder") from None


def _checked(found: os.stat_result, named: NamedPath) -> os.stat_result:
    if stat.S_ISLNK(found.st_mode):
        raise _fault(named, "is a link")
    if stat.S_ISDIR(found.st_mode):
        raise _fault(named, "is a folder, and one file is given by an argument")
    if not stat.S_ISREG(found.st_mode):
        raise _fault(named, "is no regular file")
    if named.write and found.st_nlink > 1:
        # Another name of the same file may lie where nobody may write.
        raise _fault(named, "has another name somewhere")
    return found


def _fault(named: NamedPath, reason: str) -> UsageError:
    message = f"`{named.parameter}`: `{named.text[:200]}` {reason}"
    return UsageError(error("argument-access", message, at=At(flag=f"argument {named.parameter}")))
