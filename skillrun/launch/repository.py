"""A git repository that a run made: what in it would run commands once somebody uses it."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Final

from skillrun import resources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST: Final = 1 << 20  # bytes of a config that are read
_MOST_HOOKS: Final = 200
_MARK: Final = b"\xef\xbb\xbf"  # the byte order mark
_SECTION = re.compile(r"\[\s*([A-Za-z0-9.-]+)(?:\s+\"(?:[^\"\\]|\\.)*\")?\s*\]")
_KEY = re.compile(r"(?:^|\])\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=|$)")


def commands(repository: Path) -> Iterator[str]:
    """Name the active hooks and the settings of a `.git` folder that run commands.

    Read by descriptor without following links, regular files only, within a cap (law 11). git itself
    is not asked: it would read the same config.
    """
    for name in _hooks(repository):
        yield f"the hook `{name}`"
    for name in ("commondir", "config.worktree"):
        if os.path.lexists(repository / name):
            yield f"`{name}`, which git obeys like its config"
    text = _read(repository / "config")
    if text is None:
        yield "a config that can't be judged"
        return
    table = resources.table("protected")
    keys = {line["key"]: line["why"] for line in table["git_commands"]}
    sections = set(table["git_command_sections"])
    for section, key in _settings(text):
        if f"{section}.{key}" in keys:
            yield f"`{section}.{key}` in its config ({keys[f'{section}.{key}']})"
        elif section in sections:
            yield f"`{section}.{key}` in its config"


def _hooks(repository: Path) -> Iterator[str]:
    """List the hooks that are not samples."""
    try:
        names = sorted(os.listdir(repository / "hooks"))[:_MOST_HOOKS]  # noqa: PTH208 - capped, and names only
    except OSError:
        return
    yield from (name for name in names if not name.endswith(".sample"))


def _read(path: Path) -> str | None:
    """Read a regular file whole; None when it is something else, too large, or starts with a mark git skips."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        words = os.read(descriptor, _MOST + 1)
        if len(words) > _MOST or words.startswith(_MARK):
            return None
        return words.decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Give the section and key of each setting, in lower case; a key may stand on its section's line."""
    section = ""
    for line in text.splitlines():
        header = _SECTION.match(line.strip())
        if header:
            section = header[1].split(".")[0].lower()
        key = _KEY.search(line)
        if key and section and not line.lstrip().startswith(("#", ";")):
            yield section, key[1].lower()
