"""Held: a run kept to what `skillrun.lock` approved for exactly this version of a skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillrun.check.lock import FILE_NAME, differences, read_lock
from skillrun.check.project import placed
from skillrun.check.subject import Subject
from skillrun.errors import SkillError
from skillrun.permissions.closed import may_be
from skillrun.permissions.project import repository_root
from skillrun.problem import At, Severity, error

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.host import Host
    from skillrun.permissions.layers import Layers
    from skillrun.skills.model import Skill


def hold_to_lock(skill: Skill, layers: Layers, digest: str, host: Host) -> None:
    """Refuse a skill that is not as approved. SkillError names each permission and file that moved.

    `digest` is that of the very bytes that are about to run. The lock is the nearest `skillrun.lock` above the
    skill, within its repository. Less than was approved is no reason to refuse; what a person adds for one run
    by flags or typed arguments is that person's own word and not looked at here.
    """
    path = _lock_of(skill.path)
    lock = None if path is None else read_lock(path)
    if path is None or lock is None:
        message = f"there is no `{FILE_NAME}` above `{skill.found}`, and `--locked` asks for one"
        raise SkillError(
            error(
                "not-locked", message, at=At(skill.manifest), help="`skillrun lock --approve SKILL` makes it"
            )
        )
    subject = Subject(skill, placed(layers, path.parent, host))
    entry = lock.entries.get(subject.label)
    if entry is None:
        message = f"`{path}` has no entry for `{subject.label}`: nobody has approved it"
        raise SkillError(
            error(
                "not-locked",
                message,
                at=At(skill.manifest),
                help=f"`skillrun lock --approve {subject.label}`",
            )
        )
    moved = [found.problem for found in differences(subject, entry)]
    moved = [one for one in moved if one.rule == "lock-file" or one.severity is Severity.ERROR]
    if digest != entry.digest and not any(one.rule == "lock-file" for one in moved):
        # The files were changed between the two looks; what counts is what would have run.
        moved.append(
            error(
                "lock-file", "not the files that were approved: they changed just now", at=At(skill.manifest)
            )
        )
    if moved:
        raise SkillError(*moved)


def _lock_of(folder: Path) -> Path | None:
    """Return the nearest lock above a skill, not beyond its repository; one that can't be told is judged when read."""
    top = repository_root(folder)
    for parent in (folder, *folder.parents):
        if may_be(f"{parent}/{FILE_NAME}"):
            return parent / FILE_NAME
        if parent == top:
            break
    return None
