"""One skill: a folder with a SKILL.md becomes a Skill, whatever lies in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.errors import SkillError, UsageError
from skillrun.problem import At, Problem, error
from skillrun.skills.disk import LinkError, NotRegularError, home_or_above, is_inside, read_start
from skillrun.skills.front_matter import FrontMatter, read_front_matter
from skillrun.skills.keys import skill_key
from skillrun.skills.model import Skill
from skillrun.skills.node import Scalar
from skillrun.skills.scripts import find_scripts
from skillrun.skills.strict_yaml import SIZE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

MANIFEST: Final = "SKILL.md"


def read_skill(
    folder: Path,
    *,
    root: Path | None = None,
    found: Path | None = None,
    repository: Path | None = None,
    home: Path | None = None,
) -> Skill:
    """Read the skill in one folder, which may be reached by a link.

    `found` is how the folder was found (default: `folder`). A SKILL.md that is itself a link is read
    when it leads to a file of that name inside the skill, `root` or `repository`. What is wrong with
    the skill is in its problems; raises UsageError only when there is no skill: no such folder, or no
    SKILL.md in it.
    """
    try:
        physical = os.path.realpath(folder, strict=True)
        names = os.listdir(physical)  # noqa: PTH208 - names are compared as they are on disk: `skill.md` is not SKILL.md
    except (OSError, ValueError) as wrong:
        raise UsageError(_no_folder(folder, wrong)) from None
    if MANIFEST not in names:
        near = next((name for name in names if name.lower() == MANIFEST.lower()), None)
        raise UsageError(misnamed(Path(physical), near) if near else _no_manifest(Path(physical)))
    if home is not None:
        home = Path(os.path.realpath(home))
    return load_skill(physical, found=found or folder, root=root, repository=repository, home=home)


def load_skill(
    physical: str,
    *,
    found: Path,
    root: Path | None,
    repository: Path | None,
    home: Path | None,
    scripts: list[os.DirEntry[str]] | None = None,
) -> Skill:
    """Make the Skill of a folder that has a SKILL.md. Raises nothing for what is on disk.

    `physical` and `home` are physical; `scripts` is what the caller saw in `scripts`, None when it did not look.
    """
    path = found if os.fspath(found) == physical else Path(physical)
    manifest = path / MANIFEST
    front: FrontMatter | None = None
    problems: tuple[Problem, ...] = ()
    try:
        _check_folder(physical, manifest, home)
        front = read_front_matter(_manifest_bytes(manifest, (path, root, repository)), path=manifest)
        problems = front.problems
    except SkillError as wrong:
        problems = wrong.problems
    name = front.text("name") if front is not None else None
    key, odd = skill_key(name, found.name or path.name, manifest=manifest, at=_place(front, "name"))
    listed, about_scripts = find_scripts(path, scripts)
    return Skill(
        key=key,
        name=name,
        description=front.text("description") if front is not None else None,
        path=path,
        found=found,
        root=root,
        manifest=manifest,
        front=front.mapping if front is not None else None,
        scripts=listed,
        problems=(*problems, *odd, *about_scripts),
    )


def misnamed(folder: Path, name: str) -> Problem:
    """Say that a folder has a file that is called almost SKILL.md."""
    message = f"found `{name}`, expected `{MANIFEST}`: the skill is not read"
    return error("skill-misnamed", message, at=At(folder / name), help=f"rename it to `{MANIFEST}`")


def _place(front: FrontMatter | None, key: str) -> At | None:
    entry = front.mapping.get(key) if front is not None else None
    return entry.value.at if entry is not None and isinstance(entry.value, Scalar) else None


def _manifest_bytes(manifest: Path, bounds: Sequence[Path | None]) -> bytes:
    """Read a SKILL.md, one byte more than is ever used so that a larger one shows. Raises SkillError."""
    try:
        try:
            return read_start(manifest, SIZE_LIMIT + 1)[0]
        except LinkError:
            return read_start(_through_link(manifest, bounds), SIZE_LIMIT + 1)[0]
    except NotRegularError:
        message = f"`{MANIFEST}` is not a regular file"
        raise SkillError(error("manifest-not-a-file", message, at=At(manifest))) from None
    except OSError as wrong:
        message = f"`{MANIFEST}` can't be read: {wrong.strerror}"
        raise SkillError(error("manifest-unreadable", message, at=At(manifest))) from None


def _check_folder(physical: str, manifest: Path, home: Path | None) -> None:
    """Refuse a skill whose folder, which its scripts may read, is somebody's home."""
    if home_or_above(physical, home):
        message = "the folder of a skill is readable for its scripts; it can't be a home folder or above one"
        raise SkillError(
            error("skill-folder-refused", message, at=At(manifest), help="move the skill into a folder")
        )


def _through_link(manifest: Path, bounds: Sequence[Path | None]) -> str:
    """Follow a SKILL.md that is a link; only to another SKILL.md, since messages show lines of what was read."""
    try:
        target = os.path.realpath(manifest, strict=True)
    except OSError:
        message = f"`{MANIFEST}` is a link that leads nowhere"
        raise SkillError(error("manifest-link-dead", message, at=At(manifest))) from None
    if os.path.basename(target) != MANIFEST:  # noqa: PTH119 - a string that is opened as it is
        message = f"`{MANIFEST}` links to a file of another name, so it was not read"
        raise SkillError(
            error("manifest-link-other", message, at=At(manifest), help=f"link to a `{MANIFEST}`")
        )
    if not any(is_inside(target, os.path.realpath(bound)) for bound in bounds if bound):
        message = f"`{MANIFEST}` links out of its root and repository, so it was not read"
        raise SkillError(
            error("manifest-link-out", message, at=At(manifest), help="link the folder, or copy the file")
        )
    return target


def _no_folder(folder: Path, wrong: OSError | ValueError) -> Problem:
    if isinstance(wrong, FileNotFoundError):
        return error(
            "skill-missing", f"there is no skill at `{folder}`: the folder does not exist", at=At(folder)
        )
    reason = wrong.strerror if isinstance(wrong, OSError) else "it is not a path"
    return error("skill-unreadable", f"`{folder}` can't be read as a skill's folder: {reason}", at=At(folder))


def _no_manifest(folder: Path) -> Problem:
    return error("skill-missing", f"there is no `{MANIFEST}` in `{folder}`, so it is no skill", at=At(folder))
