"""Aftermath: what a run left behind, looked at only after everything of it is dead (law 11).

Nothing here follows a link: the script may have put one anywhere it could write, to make us report,
move or open what is somebody else's. Paths are walked by descriptor from the top.
"""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any, Final

from skillrun.errors import SkillError
from skillrun.launch.quarantine import move_away, regain
from skillrun.launch.repository import commands
from skillrun.permissions.capabilities import below
from skillrun.permissions.closed import ClosedError
from skillrun.problem import At, Problem, error, warning
from skillrun.sandbox.complete import first_parts, protected_names, quarantined
from skillrun.sandbox.policy import Kept
from skillrun.sandbox.search import search
from skillrun.sandbox.walk import Walker
from skillrun.skills.digest import identity

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from skillrun.launch.capture import Captured
    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Policy
    from skillrun.sandbox.search import Search

_CLOSED_IN_EACH_OTHER: Final = 8  # each is one search more, of 0.2 s at most


def violations(
    policy: Policy,
    landscape: Landscape,
    before: Search,
    *,
    quarantine: Path | None,
    skill_roots: Sequence[Path],
    obeyed: Callable[[Collection[Path]], Iterable[tuple[Path, str]]],
) -> tuple[Problem, ...]:
    """Report what was changed or appeared that a script may not change or make.

    A path that is absent can't be kept away by a rule or a mount, so the write roots are searched again.
    What would limit the next run or run as a skill is moved to `quarantine`, or where there is none, named.
    `obeyed` gives what the user's own settings of git name in new repositories.
    """
    found = list(_script_changed(policy))
    roots = tuple(root for root in policy.write_roots if root != policy.scratch)
    if not roots:
        return tuple(found)
    after, opened = _searched(roots, before)
    found += opened
    with Walker() as walker:
        found += _replaced(policy, landscape, walker)
        old_bases = set(before.bases)
        new_bases = tuple(base for base in after.bases if base not in old_bases)
        names = (*landscape.kept, *protected_names(roots, new_bases))
        new_git = {*after.repositories, *after.git_files, *after.bare}.difference(
            before.repositories, before.git_files, before.bare
        )
        # What is in a new repository is named with it; what git takes from beside it is not.
        folders = new_git.intersection(after.repositories)
        if folders:
            names = tuple(kept for kept in names if folders.isdisjoint(kept.path.parents))
        tops = [git.parent if git.name == ".git" else git for git in sorted(new_git)]
        names += tuple(Kept(path, reason, readable=True) for path, reason in obeyed(tops))
        found += _appeared(
            names, landscape, walker, roots=roots, quarantine=quarantine, skill_roots=skill_roots
        )
    found += _repositories(before, after)
    found += [
        _skill_appeared(path, quarantine, skill_roots)
        for path in sorted(set(after.skills).difference(before.skills))
    ]
    old_doors = {door for door, _ in before.doors}
    for path, kind in after.doors:
        if path not in old_doors:
            message = f"`{path}` appeared during the run, and the script could use it: {kind}"
            found.append(warning("door-appeared", message, at=At(path=path)))
    if not after.complete:
        message = "the run left too many files to look for what would run later"
        found.append(warning("search-incomplete", message, help="grant a smaller folder"))
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


def _replaced(policy: Policy, landscape: Landscape, walker: Walker) -> Iterator[Problem]:
    """Report kept files that are not the ones that were kept.

    When somebody outside renames a new file over a kept one during a run, the kernel drops the mount
    that covered it, and at level 2 the script could write the new one (facts/launcher2, 3).
    """
    for kept in landscape.kept:
        spot = landscape.spots.get(kept.path)
        inside = any(below(kept.path, root) for root in policy.write_roots)
        if spot is None or spot.folder or not inside:
            continue
        try:
            now = walker.look(kept.path)
        except ClosedError as closed:
            message = f"`{closed.folder}` hides whether `{kept.path}`, which must not be changed, was replaced during the run"
        else:
            if now is not None and (now.st_dev, now.st_ino) == (spot.device, spot.inode):
                continue
            message = f"`{kept.path}` must not be changed, and was replaced or removed during the run"
        yield warning(
            "protected-replaced", message, at=At(path=kept.path), help="compare it with what it should be"
        )


def _appeared(
    kept: Sequence[Kept],
    landscape: Landscape,
    walker: Walker,
    *,
    roots: Sequence[Path],
    quarantine: Path | None,
    skill_roots: Sequence[Path],
) -> Iterator[Problem]:
    """Report kept paths that are there now and were not before."""
    seen: set[Path] = set()
    for entry in kept:
        path = entry.path
        if path in landscape.present or path in seen:
            continue
        try:
            found = walker.look(path)
            # A new link on the way is not followed here, and whoever uses the path will.
            link = walker.first_link(path) if found is None else None
        except ClosedError:
            continue  # the folder is told of
        if found is None:
            if link is not None and link not in landscape.present and link not in seen:
                seen.add(link)
                if any(below(link, root) for root in roots):
                    yield _told(link, entry.reason)
            continue
        seen.add(path)
        limits = any(path.parts[-len(name.split("/")) :] == tuple(name.split("/")) for name in quarantined())
        is_root = path in skill_roots and stat.S_ISDIR(found.st_mode)
        yield _told(path, entry.reason, move_away(path, quarantine) if limits or is_root else None)


def _searched(roots: Collection[Path], before: Search) -> tuple[Search, list[Problem]]:
    """Search what a run could write in, and open what it closed: what later runs may be in there.

    Of folders that were closed one in the other only so many are opened as take no time; the next is told of as it is.
    """
    told: dict[Path, Problem] = {}
    after = search(roots, first_parts())
    for _ in range(_CLOSED_IN_EACH_OTHER):
        closed = [folder for folder in after.shut if folder not in told and folder not in before.shut]
        if not closed:
            break
        told.update((folder, _opened(folder)) for folder in closed)
        after = search(roots, first_parts())
    return after, list(told.values())


def _opened(folder: Path) -> Problem:
    """Give the owner of a folder the rights back that a run has taken."""
    what = "its owner's rights were given back"
    try:
        with Walker() as walker:
            regain(folder, walker)
    except (ClosedError, OSError) as wrong:
        what = f"what is in it can't be told ({wrong})"
    message = f"`{folder}` could not be looked into any more after the run; {what}"
    return warning("folder-closed", message, at=At(path=folder), help="look at it before anything uses it")


def _told(path: Path, reason: str, moved: Path | None = None) -> Problem:
    """Say that something appeared, and where it was moved to if it was."""
    what = f"and was moved to `{moved}`" if moved is not None else "and what it does later is not confined"
    message = f"`{path}` was not there before the run and is now, {what}: {reason}"
    return warning("protected-appeared", message, at=At(path=path), help="look at it before anything uses it")


def _skill_appeared(path: Path, quarantine: Path | None, skill_roots: Sequence[Path]) -> Problem:
    """Report a skill that was made; inside a known root it is moved away, as a later run would find it."""
    known = any(root in path.parents for root in skill_roots)
    return _told(path / "SKILL.md", "a skill", move_away(path, quarantine) if known else None)


def _repositories(before: Search, after: Search) -> Iterator[Problem]:
    """Name what would run commands in repositories that were not there before; a plain one is no violation."""
    for path in sorted(set(after.git_files).difference(before.git_files)):
        yield _told(path, "it names the repository that git uses")
    old = {*before.repositories, *before.bare}
    for repository in (*after.repositories, *after.bare):
        if repository in old:
            continue
        found = list(commands(repository))
        if found:
            yield warning(
                "repository-commands",
                f"the run made the repository `{repository}` with {', '.join(found)}",
                at=At(path=repository),
                help="look at them before you use git there",
            )


def structured(stdout: Captured) -> Any:
    """Return the JSON value that a script printed, None when its output is not one whole value."""
    text = stdout.text.strip()
    if stdout.truncated or not text or text[0] not in "{[":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
