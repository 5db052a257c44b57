"""Hint: the one command that would let a skill that asks for nothing do its work (DESIGN 7.6, 11)."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.errors import SkillrunError
from skillrun.permissions.flags import Flags
from skillrun.permissions.grant import Capability
from skillrun.report.escape import escape
from skillrun.report.running import ARGUMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillrun.launch.result import Result
    from skillrun.permissions.grant import Grant, Narrowed, Refused
    from skillrun.runner import Runner

RIGHTS: Final = frozenset({Capability.FS_READ, Capability.FS_WRITE, Capability.NETWORK})


def asks_for_nothing(grant: Grant) -> bool:
    """Whether neither the skill nor a flag asked for a path or the network; what was typed is no request."""
    asked = {item.capability for item in grant.granted if item.at.flag != ARGUMENT}
    cuts: tuple[Narrowed | Refused, ...] = (*grant.narrowed, *grant.refused)
    asked |= {cut.capability for cut in cuts if cut.asked_at.flag != ARGUMENT}
    return not asked & RIGHTS


def helping_flags(runner: Runner, result: Result, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the flags that would let the script read or write what it was given, none when nothing would.

    Each one is tried: what a deny line, a secret name or a floor keeps away is never suggested. A path
    that is there and could not be read is read; one that is not there yet is written; when all could be
    read, writing them is what is left.
    """
    grant, cwd = result.grant, result.cwd
    if grant.unconfined is not None:
        return ()
    paths = dict.fromkeys(_paths(arguments, cwd))
    unread = [path for path in paths if os.path.lexists(path) and not grant.allows_read(_physical(path))]
    unmade = [path for path in paths if not os.path.lexists(path) and os.path.isdir(os.path.dirname(path))]  # noqa: PTH112, PTH120 - texts as they were typed
    wanted = [("--read", path) for path in unread] + [("--write", path) for path in unmade]
    wanted = wanted or [("--write", path) for path in paths if os.path.lexists(path)]
    wanted = wanted or [("--read", str(runner.workspace))]
    allowed = [(flag, path) for flag, path in wanted if _would_be_granted(runner, result, flag, path)]
    return tuple(word for flag, path in allowed for word in (flag, _short(path)))


def command_line(flags: Sequence[str], words: Sequence[str]) -> str | None:
    """Write the command as a shell takes it; None when a terminal would not show it as it is to be typed."""
    text = shlex.join(["skillrun", "run", *flags, *words])
    return text if escape(text) == text else None


def _paths(arguments: Sequence[str], cwd: Path) -> Iterator[str]:
    """Yield what looks like a path among arguments: something that is there, has a slash or a suffix."""
    for argument in arguments:
        text = argument.partition("=")[2] if argument.startswith("-") else argument
        if not text or "://" in text:
            continue
        path = os.path.normpath(cwd / text)
        if os.path.lexists(path) or "/" in text or Path(text).suffix:
            yield path


def _would_be_granted(runner: Runner, result: Result, flag: str, path: str) -> bool:
    flags = Flags(read=(path,)) if flag == "--read" else Flags(write=(path,))
    try:
        grant = runner.preview(result.skill, result.script_name, flags=flags).ready.grant
    except SkillrunError:
        return False
    physical = _physical(path)
    return grant.allows_read(physical) if flag == "--read" else grant.allows_write(physical)


def _physical(path: str) -> Path:
    return Path(os.path.realpath(path))


def _short(path: str) -> str:
    """Write a path from where the caller stands, if it lies there."""
    here = str(Path.cwd())
    if path == here:
        return "."
    return path[len(here) + 1 :] if path.startswith(f"{here}/") else path
