"""Scratch: the private folder of one run, and write paths that have to be made before it."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillrun.confine.trees import remove
from skillrun.errors import ConfigError
from skillrun.problem import error
from skillrun.sandbox.environment import BIN, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Sequence

RUNS = "runs"  # the folder of scratch folders, beside that of programs
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def furnish(root: Path, python: Path | None) -> None:
    """Make the folders of all runs of a launcher: that of their scratch folders, and that of programs.

    `python` is linked as `python` and `python3`: one script in nine looks for the name that this system
    may lack (facts/adoption 2).
    """
    (root / RUNS).mkdir(0o700, exist_ok=True)
    path = root / BIN
    path.mkdir(0o755, exist_ok=True)
    if python is not None:
        for name in ("python", "python3"):
            with contextlib.suppress(FileExistsError):
                (path / name).symlink_to(python)


def make_scratch(root: Path) -> Path:
    """Make a scratch folder, mode 0700, for one run."""
    # 16 hexadecimal digits, in a folder that only we can write: no guess and no clash.
    path = f"{root}/{os.urandom(8).hex()}"
    os.mkdir(path, 0o700)  # noqa: PTH102 - the hot path of every run
    os.mkdir(f"{path}/{OUTPUT}", 0o700)  # noqa: PTH102 - see above
    return Path(path)


def remove_scratch(path: Path) -> bool:
    """Remove a scratch folder, whatever the script made of it; return whether it is gone."""
    return _remove_unused(path) or remove(str(path))


def _remove_unused(path: Path) -> bool:
    """Remove a scratch folder that holds no more than it was made with, as most runs leave it; never through a link."""
    try:
        folder = os.open(path, _FOLDER)
        try:
            os.rmdir(OUTPUT, dir_fd=folder)
        finally:
            os.close(folder)
        os.rmdir(path)  # noqa: PTH106 - the hot path of every run
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A write path that was made for a run; what it was like when it was made tells whether it was used."""

    path: Path
    device: int
    inode: int
    changed: int  # st_mtime_ns when it was made
    folder: bool


def make_missing(missing: Sequence[tuple[Path, bool]]) -> tuple[Placeholder, ...]:
    """Make granted write paths that do not exist, folders above them included, never through a link.

    Raises ConfigError when one can't be made; what was made for it so far is taken back.
    """
    made: list[Placeholder] = []
    path = Path()
    try:
        for path, folder in missing:
            _make(path, folder=folder, made=made)
    except OSError as problem:
        remove_untouched(made)
        message = f"`{path}` was granted for writing and can't be made: {problem.strerror}"
        raise ConfigError(error("write-path", message)) from problem
    return tuple(made)


def _make(path: Path, *, folder: bool, made: list[Placeholder]) -> None:
    """Make one path from the root down, holding each folder by descriptor so that no link gets between."""
    above = os.open("/", _FOLDER)
    try:
        *names, last = path.parts[1:]
        here = Path("/")
        for name in names:
            here /= name
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=above)
                made.append(_placeholder(here, name, above))
            below = os.open(name, _FOLDER, dir_fd=above)
            os.close(above)
            above = below
        with contextlib.suppress(FileExistsError):
            if folder:
                os.mkdir(last, dir_fd=above)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                os.close(os.open(last, flags, 0o666, dir_fd=above))
            made.append(_placeholder(path, last, above))
    finally:
        os.close(above)


def _placeholder(path: Path, name: str, above: int) -> Placeholder:
    """Note what was just made."""
    found = os.stat(name, dir_fd=above, follow_symlinks=False)
    return Placeholder(path, found.st_dev, found.st_ino, found.st_mtime_ns, stat.S_ISDIR(found.st_mode))


def remove_untouched(made: Sequence[Placeholder]) -> None:
    """Remove the paths that the run left as they were made, the latest first.

    An empty file or folder can be a script's own output, so emptiness is not enough: the modification
    time must be the one from before. A folder that is not empty stays.
    """
    for placeholder in reversed(made):
        with contextlib.suppress(OSError):
            found = os.lstat(placeholder.path)
            identity = (found.st_dev, found.st_ino)
            same = identity == (placeholder.device, placeholder.inode)
            if not same:
                continue
            if placeholder.folder:
                # Making and removing an inner placeholder changes the time of the folder above it.
                inner = any(placeholder.path in other.path.parents for other in made)
                if inner or found.st_mtime_ns == placeholder.changed:
                    placeholder.path.rmdir()
            elif found.st_mtime_ns == placeholder.changed and found.st_size == 0:
                placeholder.path.unlink()
