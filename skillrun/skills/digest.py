"""What identifies a version of a skill, and one file of it."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.errors import SkillError
from skillrun.problem import At, error
from skillrun.skills.disk import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_FORMAT: Final = b"skillrun digest 1\n"
_CHUNK: Final = 1 << 18
ENTRY_LIMIT: Final = 100_000
"""Files of one skill. The largest known has 1,800; past this the folder is something else."""
BYTES_LIMIT: Final = 8 << 30
"""Bytes of all of them. A file can be terabytes long and take no room on disk; hashing it would take an hour each time."""
_LEFT_OUT: Final = frozenset({b".git", b"__pycache__"})  # changed by using the skill, not by its author
_KINDS: Final = {stat.S_IFIFO: b"p", stat.S_IFSOCK: b"s", stat.S_IFCHR: b"c", stat.S_IFBLK: b"b"}


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What tells one regular file from any other: where it lies, and what is in it (hex)."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Part:
    """One entry of a digest: relative path, kind and exec bit as single bytes, content as `digest` says."""

    path: bytes
    kind: bytes
    executable: bytes
    content: bytes


def digest(skill_folder: Path) -> str:
    """Return `sha256:<hex>` over everything in a skill's folder that its author made.

    Entries are sorted by their relative path as bytes. Each gives: kind (`f` file, `l` link, `p`, `s`,
    `c`, `b` for what can't be read), owner's exec bit, length of the path (8 bytes, big-endian), path,
    length of the content, and the content: a file's own sha256, a link's target text, or nothing. Folders
    count through what is in them. `.git`, `__pycache__` and `node_modules/.cache` are left out.
    Raises SkillError `digest-unreadable` or `digest-too-large`: what can't be read is never left out.
    """
    return digest_of(parts(skill_folder))


def parts(skill_folder: Path) -> tuple[Part, ...]:
    """Return what a skill's digest is made of, sorted by path. Raises SkillError as `digest` does."""
    top = os.fsencode(skill_folder)
    try:
        found = sorted(_entries(top))
        if sum(os.lstat(top + b"/" + relative).st_size for relative in found) > BYTES_LIMIT:
            message = f"the skill's files are more than {BYTES_LIMIT >> 30} GiB"
            raise SkillError(error("digest-too-large", message, at=At(skill_folder)))
        return tuple(Part(relative, *_content(top + b"/" + relative)) for relative in found)
    except OSError as wrong:
        where = os.fsdecode(wrong.filename) if wrong.filename else str(skill_folder)
        message = f"the skill's digest can't be made: `{where}` can't be read ({wrong.strerror})"
        raise SkillError(error("digest-unreadable", message, at=At(skill_folder))) from None


def digest_of(found: Iterable[Part]) -> str:
    """Return the digest that some parts make, `sha256:<hex>`."""
    total = hashlib.sha256(_FORMAT)
    for part in found:
        total.update(part.kind + part.executable + len(part.path).to_bytes(8, "big") + part.path)
        total.update(len(part.content).to_bytes(8, "big") + part.content)
    return f"sha256:{total.hexdigest()}"


def identity(path: Path) -> FileIdentity:
    """Identify one regular file by its physical path. Raises SkillError `file-unreadable`; a link is refused."""
    try:
        return _identify(os.fsencode(path))[0]
    except (OSError, ValueError) as wrong:
        reason = getattr(wrong, "strerror", None) or str(wrong)
        raise SkillError(error("file-unreadable", f"`{path}` can't be read: {reason}", at=At(path))) from None


def _entries(top: bytes) -> list[bytes]:
    """List the relative paths of everything but folders. Raises OSError; SkillError past the limit."""
    found: list[bytes] = []
    stack = [b""]
    while stack:
        prefix = stack.pop()
        with os.scandir(top + b"/" + prefix) as listing:
            for entry in listing:
                if entry.name in _LEFT_OUT or (entry.name == b".cache" and _in_node_modules(prefix)):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    stack.append(prefix + entry.name + b"/")
                else:
                    found.append(prefix + entry.name)
        if len(found) + len(stack) > ENTRY_LIMIT:
            message = f"the skill's folder holds more than {ENTRY_LIMIT} files"
            raise SkillError(error("digest-too-large", message))
    return found


def _in_node_modules(prefix: bytes) -> bool:
    return prefix == b"node_modules/" or prefix.endswith(b"/node_modules/")


def _content(path: bytes) -> tuple[bytes, bytes, bytes]:
    """Return kind, exec bit and content of one entry, without waiting on anything."""
    status = os.lstat(path)
    if stat.S_ISREG(status.st_mode):
        identified, mode = _identify(path)
        return b"f", b"x" if mode & stat.S_IXUSR else b"-", bytes.fromhex(identified.sha256)
    if stat.S_ISLNK(status.st_mode):
        return b"l", b"-", os.readlink(path)  # noqa: PTH115 - bytes: a target need not be text
    return _KINDS.get(stat.S_IFMT(status.st_mode), b"?"), b"-", b""


def _identify(path: bytes) -> tuple[FileIdentity, int]:
    """Hash a regular file in chunks; return its identity and mode, both of the file that was read."""
    fd, status = open_regular(path)
    try:
        content = hashlib.sha256()
        room = min(_CHUNK, status.st_size + 1)  # asking for more than there is costs the heap as much, for a moment
        while chunk := os.read(fd, room):
            content.update(chunk)
            if len(chunk) == room:
                room = _CHUNK  # it is longer than it was
    finally:
        os.close(fd)
    return FileIdentity(
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, content.hexdigest()
    ), status.st_mode
