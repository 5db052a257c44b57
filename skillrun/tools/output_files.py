"""Output files: what a script put into $SKILLRUN_OUTPUT_DIR, taken once it is dead (law 11).

By descriptor, no link followed, regular files only, within caps: the script chose every name and every kind.
"""

from __future__ import annotations

import mimetypes
import os
import re
import stat
from typing import TYPE_CHECKING, Final

from skillrun.problem import Problem, warning
from skillrun.tools.outcome import Attachment
from skillrun.tools.told import prose

if TYPE_CHECKING:
    from pathlib import Path

MOST_FILES: Final = 16
MOST_BYTES: Final = 5 << 20
"""Bytes of one file; what the model APIs take as one image or document."""
MOST_TOGETHER: Final = 16 << 20
_IMAGES: Final = {
    "image/png": re.compile(rb"\x89PNG"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
"""How the images that models look at begin; what comes then is for the API to judge."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def collect(folder: Path) -> tuple[tuple[Attachment, ...], tuple[Problem, ...]]:
    """Read the files of a folder, in order of their names; the problems say what was left out and why."""
    try:
        descriptor = os.open(folder, _FOLDER)
    except OSError:
        return (), (
            warning(
                "output-folder", "the folder for output files was replaced, so nothing was taken from it"
            ),
        )
    try:
        with os.scandir(descriptor) as entries:
            names = sorted(entry.name for _, entry in zip(range(MOST_FILES * 64), entries, strict=False))
        return _read_all(descriptor, names)
    finally:
        os.close(descriptor)


def _read_all(folder: int, names: list[str]) -> tuple[tuple[Attachment, ...], tuple[Problem, ...]]:
    taken: list[Attachment] = []
    problems: list[Problem] = []
    left = MOST_TOGETHER
    for name in names:
        # One line, and nothing hidden: the name stands in the text that a model reads, and in the log.
        shown = prose(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        shown = shown.replace("\n", "\\n").replace("\t", "\\t")
        reason = f"there are more than {MOST_FILES}" if len(taken) >= MOST_FILES else None
        data = None
        if reason is None:
            data, reason = _read(folder, name, min(left, MOST_BYTES))
        if data is None:
            problems.append(warning("output-file", f"`{shown}` was left out: {reason}"))
            continue
        left -= len(data)
        taken.append(Attachment(shown, _kind(shown, data), data))
    return tuple(taken), tuple(problems)


def _kind(name: str, data: bytes) -> str:
    """Return the media type of a file: by its name, and of an image by what is in it as well.

    An API that is sent something else for an image refuses the whole conversation, then and ever after.
    """
    kind, packed = mimetypes.guess_type(f"./{name}", strict=True)
    kind = None if packed else kind
    start = _IMAGES.get(kind or "")
    if start is not None and not start.match(data):
        kind = None
    return kind or "application/octet-stream"


def _read(folder: int, name: str, most: int) -> tuple[bytes | None, str | None]:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            return None, "it is no regular file"
        if found.st_nlink > 1:
            return None, "it has another name somewhere"
        if found.st_size > most:
            return None, f"it has {found.st_size} bytes, and {most} are taken at most"
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except OSError as wrong:
        return None, f"it can't be read: {wrong.strerror}"
    with os.fdopen(descriptor, "rb") as file:
        again = os.fstat(file.fileno())
        if (again.st_dev, again.st_ino) != (found.st_dev, found.st_ino):
            return None, "it was replaced"
        return file.read(most), None
