"""The interpreter of a script, found on this host by looking only: nothing is executed to identify it."""

from __future__ import annotations

import functools
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun import resources
from skillrun.errors import SkillError
from skillrun.problem import error
from skillrun.skills.disk import is_inside, links_on_the_way, read_start
from skillrun.skills.model import Interpreter
from skillrun.skills.prefix import find_prefixes
from skillrun.skills.trust import distrust

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillrun.skills.model import Command

SYSTEM: Final = ("/usr/local/bin", "/usr/bin", "/bin")
"""Folders of the system's own programs, looked at after the caller's PATH."""


def find_interpreter(
    command: Command,
    *,
    search: str,
    home: Path | None = None,
    system: Sequence[str] = SYSTEM,
    refuse: Sequence[Path] = (),
) -> Interpreter:
    """Find the program that a command names.

    `search` is the caller's PATH. Its entries are skipped where they are empty, relative, changeable
    by others, or below a folder of `refuse` (the workspace: what a script wrote there must not run
    the next script); candidates are skipped where they are scripts themselves or in a `shims` folder.
    An absolute program is used as given. Raises SkillError `interpreter-not-found`,
    `interpreter-is-script` or `interpreter-not-executable`; ValueError for a command without program.
    """
    if not command.program:
        raise ValueError("a native executable has no interpreter")
    if command.program.startswith("/"):
        path = command.program
        _check_given(path)
    else:
        path = _search(command.program, search, system, [os.path.realpath(folder) for folder in refuse])
    links, real = links_on_the_way(path)
    family = family_of(path, real)
    prefixes, more_links = find_prefixes(path, real, family, home=home)
    return Interpreter(
        path=Path(path),
        real=Path(real),
        links=tuple(Path(link) for link in dict.fromkeys((*links, *more_links))),
        prefixes=tuple(Path(prefix) for prefix in prefixes),
        family=family,
        args=command.args,
    )


def _check_given(path: str) -> None:
    """Raise SkillError where the absolute program of an interpreter line can't be used."""
    name = path.rpartition("/")[2]
    try:
        _, real = links_on_the_way(path)
        start, status = read_start(real, 2)
    except FileNotFoundError:
        help_ = f"write `#!/usr/bin/env {name}`, or install it"
        message = f"the interpreter `{path}` was not found on this machine"
        raise SkillError(error("interpreter-not-found", message, help=help_)) from None
    except PermissionError:
        if os.access(path, os.X_OK):
            return  # executable and not readable: nothing more can be said about it
        message = f"the interpreter `{path}` can't be reached or executed"
        raise SkillError(error("interpreter-not-executable", message)) from None
    except (OSError, ValueError) as wrong:
        message = f"the interpreter `{path}` can't be used: {getattr(wrong, 'strerror', None) or wrong}"
        raise SkillError(error("interpreter-not-executable", message)) from None
    if not status.st_mode & 0o111 or not os.access(path, os.X_OK):
        raise SkillError(error("interpreter-not-executable", f"the interpreter `{path}` is not executable"))
    if start == b"#!":
        message = f"the interpreter `{path}` is itself a script, which needs an interpreter of its own"
        raise SkillError(error("interpreter-is-script", message, help="name the program that it starts"))


def _search(name: str, search: str, system: Sequence[str], refuse: Sequence[str]) -> str:
    """Look a bare name up, then what may stand in for it; raise SkillError with all that was skipped."""
    skipped: list[str] = []
    for wanted in (name, *_instead().get(name, ())):
        for folder in _folders(search, system, refuse, skipped):
            path = f"{folder.rstrip('/')}/{wanted}"
            try:
                _, real = links_on_the_way(path)
                reason = _unfit(path, real, refuse)
            except (OSError, ValueError):
                continue
            if reason is None:
                return path
            skipped.append(f"`{path}` ({reason})")
    message = f"the interpreter `{name}` was not found on this machine"
    help_ = "install it, or put its folder on PATH"
    if skipped:
        help_ = "passed over: " + ", ".join(dict.fromkeys(skipped))
    raise SkillError(error("interpreter-not-found", message, help=help_))


def _folders(search: str, system: Sequence[str], refuse: Sequence[str], skipped: list[str]) -> Iterator[str]:
    """Yield the folders to look in, without those that somebody else could put a program into."""
    for folder in dict.fromkeys((*search.split(":"), *system)):
        if not folder.startswith("/"):
            continue  # empty and relative entries mean the current folder, which is whatever was cloned last
        real = os.path.realpath(folder)
        if any(is_inside(real, refused) for refused in refuse):
            reason: str | None = "below the workspace"
        elif "/shims" in (folder[folder.rfind("/") :], real[real.rfind("/") :]):
            reason = "a folder of shims, which choose a program by the current folder"
        else:
            reason = distrust(real)
        if reason is None:
            yield folder
        elif os.path.isdir(real):  # noqa: PTH112 - a string, from realpath
            skipped.append(f"`{folder}` ({reason})")


def _unfit(path: str, real: str, refuse: Sequence[str]) -> str | None:
    """Say why a candidate is passed over, None when it is taken. Raises OSError where it is no program at all."""
    status = os.lstat(real)
    if not stat.S_ISREG(status.st_mode) or not status.st_mode & 0o111 or not os.access(path, os.X_OK):
        raise OSError(0, "not an executable file")
    if any(is_inside(real, refused) for refused in refuse):
        return "leads below the workspace"
    if real.split("/")[-2:-1] == ["shims"]:
        return "leads into a folder of shims"
    reason = distrust(real) or distrust(real.rpartition("/")[0] or "/")
    if reason is not None:
        return reason
    try:
        start, _ = read_start(real, 2)
    except PermissionError:
        return None
    return "it is itself a script" if start == b"#!" else None


def family_of(*names: str) -> str:
    """Say what kind of interpreter a path or file name means; the name it is called by counts before the file's own."""
    for name in names:
        for family, pattern in _families().items():
            if pattern.match(name.rpartition("/")[2]):
                return family
    return "other"


@functools.cache
def _families() -> dict[str, re.Pattern[str]]:
    shipped = resources.table("runtime/interpreters")["families"]
    return {family: re.compile(f"(?:{line['names']})\\Z") for family, line in shipped.items()}


@functools.cache
def _instead() -> dict[str, tuple[str, ...]]:
    shipped = resources.table("runtime/interpreters")["instead"]
    return {name: tuple(line["names"]) for name, line in shipped.items()}
