"""Aftermath: what a run left behind, looked at only after everything of it is dead."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from typing import TYPE_CHECKING, Any, Final

from skillrun import resources
from skillrun.errors import SkillError
from skillrun.launch.repository import commands
from skillrun.problem import At, Problem, error, warning
from skillrun.skills.digest import identity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from skillrun.launch.capture import Captured
    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Kept, Policy

_DEPTH: Final = 6  # levels below a skill root, as discovery goes


def violations(policy: Policy, landscape: Landscape, *, quarantine: Path | None) -> tuple[Problem, ...]:
    """Report what was changed or appeared that a script may not change or make.

    A path that is absent can't be kept away by a rule or a mount, so it is looked for afterwards. What
    would limit the next run or run as a skill is moved to `quarantine`, or where there is none, named.
    """
    found = [*_script_changed(policy), *_replaced(policy, landscape)]
    repositories = set()
    for kept in policy.kept:
        if kept.path in landscape.present or not os.path.lexists(kept.path):
            continue
        repository = _new_repository(kept.path, landscape)
        if repository is None:
            found.append(_appeared(kept, quarantine))
        elif repository not in repositories:
            repositories.add(repository)
            found += _repository_made(repository)
    return tuple(found)


def _script_changed(policy: Policy) -> Iterator[Problem]:
    """Compare the script with what was started."""
    try:
        same = identity(policy.script) == policy.script_identity
    except SkillError:
        same = False
    if not same:
        yield error(
            "script-changed", "the script was changed or replaced during the run", at=At(path=policy.script)
        )


def _replaced(policy: Policy, landscape: Landscape) -> Iterator[Problem]:
    """Report kept files that are not the ones that were kept.

    When somebody outside renames a new file over a kept one during a run, the kernel drops the mount
    that covered it, and the script could write the new one (facts/launcher2, 3).
    """
    for kept in policy.kept:
        spot = landscape.spots.get(kept.path)
        if spot is None or spot.folder or not _writable(kept.path, policy):
            continue
        with contextlib.suppress(OSError):
            now = os.lstat(kept.path)
            if (now.st_dev, now.st_ino) == (spot.device, spot.inode):
                continue
        yield warning(
            "protected-replaced",
            f"`{kept.path}` was replaced or removed during the run, and the script could write what took its place",
            at=At(path=kept.path),
            help="compare it with what it should be",
        )


def _writable(path: Path, policy: Policy) -> bool:
    """Tell whether a path lies in something the script may write."""
    return any(root in path.parents for root in policy.write_roots)


def _new_repository(path: Path, landscape: Landscape) -> Path | None:
    """Return the `.git` that a path lies in when the whole of it is new."""
    for place in (path, *path.parents):
        if place.name == ".git":
            return None if _known(place, landscape) else place
    return None


def _known(place: Path, landscape: Landscape) -> bool:
    """Tell whether anything at or below a path was there before the run."""
    known = {*landscape.spots, *landscape.present}
    return any(place == path or place in path.parents for path in known)


def _repository_made(repository: Path) -> Iterator[Problem]:
    """Name what in a new repository would run commands; a plain one is no violation."""
    found = list(commands(repository))
    if found:
        yield warning(
            "repository-commands",
            f"the run made the repository `{repository}` with {', '.join(found)}",
            at=At(path=repository),
            help="look at them before you use git there",
        )


def _appeared(kept: Kept, quarantine: Path | None) -> Problem:
    """Report a path that must not be made, and move it away when later runs would obey it."""
    message = f"`{kept.path}` was made during the run, and what it does later is not confined: {kept.reason}"
    obeyed = kept.path.name in resources.table("protected")["quarantined"] or _holds_skill(kept.path)
    moved = _move(kept.path, quarantine) if obeyed and quarantine is not None else None
    if moved is not None:
        message = f"`{kept.path}` was made during the run and was moved to `{moved}`: {kept.reason}"
    return warning(
        "protected-appeared", message, at=At(path=kept.path), help="look at it before anything uses it"
    )


def _holds_skill(path: Path) -> bool:
    """Tell whether a path is, or holds, a skill's manifest or scripts."""
    if path.name in {"SKILL.md", "scripts"}:
        return True
    top = len(path.parts)
    for folder, folders, files in os.walk(path):
        if "SKILL.md" in files:
            return True
        if folder.count("/") - top + 2 >= _DEPTH:
            folders.clear()
    return False


def _move(path: Path, quarantine: Path) -> Path | None:
    """Move a path into a fresh folder of the quarantine; None when it can't be moved."""
    target = quarantine / os.urandom(8).hex()
    try:
        quarantine.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.mkdir(mode=0o700)
        path.rename(target / path.name)
    except OSError:
        # Another file system, most often. It is taken out of its place all the same, by its name only.
        return _take_aside(path)
    return target / path.name


def _take_aside(path: Path) -> Path | None:
    """Rename a path beside itself, so that nothing finds it by its name."""
    aside = path.with_name(f"{path.name}.quarantined-{os.urandom(4).hex()}")
    try:
        path.rename(aside)
        if stat.S_ISDIR(os.lstat(aside).st_mode):
            aside.chmod(0)
    except OSError:
        return None
    return aside


def structured(stdout: Captured) -> Any:
    """Return the JSON value that a script printed, None when its output is not one whole value."""
    text = stdout.text.strip()
    if stdout.truncated or not text or text[0] not in "{[":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
