"""Library: skills as resources, read-only, as the Skills extension has them (SEP-2640).

Only what lies in a skill's own folder is served: regular files, no link followed, each folder on the way opened
by its descriptor. A file by whose name secrets go (`profiles/secrets.yaml`) is not.
"""

from __future__ import annotations

import contextlib
import functools
import mimetypes
import os
import stat
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skillrun.errors import SkillError
from skillrun.mcp.shelf import Kept
from skillrun.report.document import clean
from skillrun.resources import table
from skillrun.skills.digest import parts
from skillrun.skills.node import Items, Mapping, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skillrun.skills.catalog import Catalog
    from skillrun.skills.model import Skill
    from skillrun.skills.node import Node

EXTENSION: Final = "io.modelcontextprotocol/skills"
SCHEME: Final = "skill"
MOST_FILES: Final = 512
MOST_BYTES: Final = 16 << 20
"""What SEP-2640 has a skill hold at most; a larger one lists no files, and serves them when they are asked for."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class File:
    """A file of a skill: its link, its path in the skill, its digest and its size."""

    uri: str
    path: str
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class Volume:
    """A skill that is served. `complete` says whether `files` are all of its files."""

    skill: Skill
    uri: str
    front: dict[str, Any]
    files: tuple[File, ...]
    complete: bool

    @property
    def entry(self) -> dict[str, Any]:
        """The entry of `skills/list`."""
        listed = [{"uri": one.uri, "digest": one.digest, "size": one.size} for one in self.files]
        return {
            "uri": self.uri,
            "frontmatter": self.front,
            "resources": listed if self.complete else "dynamic",
        }

    def media_type(self, file: File) -> str:
        """Return the kind of a file, by its name."""
        if file.path.endswith(".md"):
            return "text/markdown"
        return mimetypes.guess_type(file.path, strict=True)[0] or "application/octet-stream"


def library(catalog: Catalog) -> tuple[Volume, ...]:
    """Read the skills that are found by their names, in the order of their links; reads every file once."""
    chosen = [one.skill for one in catalog.listed if one.by_name]
    made = [volume for skill in chosen if (volume := _volume(skill)) is not None]
    return tuple(sorted(made, key=lambda volume: volume.uri))


def read(volumes: Iterable[Volume], uri: str) -> Kept | None:
    """Return a file by its link, as it is now; None when it is gone, is none of ours, or grew too large."""
    for volume in volumes:
        for file in volume.files:
            if file.uri == uri:
                data = _bytes(volume.skill.path, file.path)
                return None if data is None else Kept(uri, file.path, volume.media_type(file), data)
    return None


def _volume(skill: Skill) -> Volume | None:
    """Read one skill; None for one that could not be named by a link, or not be read."""
    if skill.front is None or skill.key is None or skill.key != skill.name or not skill.description:
        return None
    try:
        found = parts(skill.path)
    except SkillError:
        return None
    top = f"{SCHEME}://{skill.key}"
    files: list[File] = []
    complete = True
    for part in found:
        path = os.fsdecode(part.path)
        if part.kind != b"f" or not _servable(path):
            complete = False
            continue
        size = _size(skill.path / path)
        uri = f"{top}/{urllib.parse.quote(path)}"
        files.append(File(uri, path, f"sha256:{part.content.hex()}", size))
    if len(files) > MOST_FILES or sum(file.size for file in files) > MOST_BYTES:
        complete = False
    front = {entry.key: _plain(entry.value) for entry in skill.front}
    return Volume(skill, f"{top}/SKILL.md", clean(front), tuple(files), complete)


def _servable(path: str) -> bool:
    """Whether a name can be written as a link, and no part of it is a name that secrets go by."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    spelled = f"/{path.casefold()}/"
    return not any(f"/{name}/" in spelled for name in _secret_names())


@functools.cache
def _secret_names() -> tuple[str, ...]:
    groups = table("secrets")["secrets"]
    return tuple(name.strip("/").casefold() for group in groups for name in group["names"])


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return os.lstat(path).st_size
    return 0


def _plain(node: Node) -> Any:
    """Return front matter as the JSON that says the same."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Items):
        return [_plain(one) for one in node]
    return {entry.key: _plain(entry.value) for entry in node} if isinstance(node, Mapping) else None


def _bytes(folder: Path, path: str) -> bytes | None:
    """Read a regular file below a folder, through real folders alone."""
    with contextlib.ExitStack() as opened, contextlib.suppress(OSError):
        *folders, name = path.split("/")
        at = os.open(folder, _FOLDER)
        opened.callback(os.close, at)
        for one in folders:
            at = os.open(one, _FOLDER, dir_fd=at)
            opened.callback(os.close, at)
        # Looked at before it is opened: opening a device can act on it.
        if not stat.S_ISREG(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
            return None
        with os.fdopen(os.open(name, _FILE, dir_fd=at), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
                return None
            data = file.read(MOST_BYTES + 1)
            return data if len(data) <= MOST_BYTES else None
    return None
