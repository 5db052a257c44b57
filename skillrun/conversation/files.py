"""Files of a conversation: long results and attachments, by plain names from a list, and two tools to look into them."""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skillrun.conversation.disk import private_folder
from skillrun.tools.outcome import ToolError
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from pathlib import Path

MOST_FILES: Final = 1_000
"""Files of one conversation."""
LARGEST: Final = 16 << 20
"""Bytes of one file that are read."""
MOST_LINES: Final = 400
"""Lines of one answer."""
MOST_HITS: Final = 50
"""Lines that a search finds."""
_WIDEST: Final = 500  # characters of a line that are shown
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Files:
    """The files in one folder. Names are made here, never taken from a model or a script; links are not followed."""

    folder: Path

    def add(self, name: str, data: bytes) -> str:
        """Save bytes under a name like the given one, and return it. Raises OSError."""
        private_folder(self.folder)
        if len(self.names()) >= MOST_FILES:
            raise OSError(f"the conversation has {MOST_FILES} files already")
        stem, dot, suffix = name.rpartition(".")
        if not dot:
            stem, suffix = name, ""
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-.")[:40] or "file"
        ending = re.sub(r"[^A-Za-z0-9]+", "", suffix)[:10]
        made = f"{plain}-{secrets.token_hex(4)}" + (f".{ending}" if ending else "")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(self.folder / made, flags, 0o600), "wb") as file:
            file.write(data)
        return made

    def keep(self, name: str, text: str) -> tuple[Path, str]:
        """Save a long result; return its file, and how a model is told of it. Raises OSError."""
        made = self.add(f"{name}.txt", text.encode("utf-8", "replace"))
        return self.folder / made, f"the file `{made}`; `read_file` and `search_files` look into it"

    def names(self) -> list[str]:
        """Return the names in order."""
        with suppress(OSError), os.scandir(self.folder) as found:
            return sorted(
                one.name for one in found if _NAME.fullmatch(one.name) and one.is_file(follow_symlinks=False)
            )
        return []

    def read(self, name: str) -> bytes:
        """Return the bytes of a file, LARGEST of them at most. Raises ToolError for a name that is not in the list."""
        known = self.names()
        if name not in known:
            listed = ", ".join(f"`{one}`" for one in known[:20]) or "there are none"
            raise ToolError(f"there is no file `{name[:100]}` in this conversation; its files: {listed}")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(self.folder / name, flags)
        except OSError as wrong:
            raise ToolError(f"`{name}` can't be read: {wrong.strerror}") from None
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ToolError(f"`{name}` is no regular file")
            return file.read(LARGEST)

    def tools(self) -> tuple[Tool, Tool]:
        """Return the two tools that look into the files."""
        return ReadFile(self), SearchFiles(self)


class _Reader(Tool):
    """What both tools have in common: they read the files of one conversation, and nothing else."""

    spill = False
    repeatable = True
    annotations = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}  # noqa: RUF012 - a setting

    def __init__(self, files: Files) -> None:
        super().__init__()
        self._files = files


class ReadFile(_Reader):
    """Read lines of a file of this conversation, such as a long result that was saved."""

    tool_name = "read_file"

    def execute(self, name: str, first_line: int = 1, lines: int = 200) -> str:
        """Give lines of a file.

        Args:
            name: name of the file, as it was told
            first_line: number of the first line, from 1
            lines: how many lines, 400 at most
        """
        text = _text(self._files.read(name))
        if text is None:
            raise ToolError(f"`{name}` is no text")
        found = text.splitlines()
        start = max(1, first_line)
        part = found[start - 1 : start - 1 + max(1, min(lines, MOST_LINES))]
        if not part:
            raise ToolError(f"`{name}` has {len(found)} lines")
        shown = "\n".join(f"{number}\t{_cut(line)}" for number, line in enumerate(part, start))
        last = start + len(part) - 1
        return f"{shown}\n[lines {start} to {last} of {len(found)}]"


class SearchFiles(_Reader):
    """Search the files of this conversation for a text, letter by letter, upper and lower case alike."""

    tool_name = "search_files"

    def execute(self, text: str, name: str | None = None) -> Any:
        """Find lines with a text.

        Args:
            text: what to look for; no pattern
            name: name of one file; all of them without it
        """
        if not text:
            raise ToolError("there is no text to look for")
        sought, hits = text.lower(), list[str]()
        for one in [name] if name is not None else self._files.names():
            try:
                found = _text(self._files.read(one))
            except ToolError:
                if name is not None:
                    raise
                continue  # it went away since it was listed
            for number, line in enumerate(found.splitlines() if found is not None else (), 1):
                if sought in line.lower():
                    hits.append(f"{one}:{number}\t{_cut(line)}")
                if len(hits) > MOST_HITS:
                    return (
                        "\n".join(hits[:MOST_HITS])
                        + f"\n[more than {MOST_HITS} lines; look for something rarer]"
                    )
        return "\n".join(hits) or "no line has it"


def _text(data: bytes) -> str | None:
    return None if b"\0" in data[:8192] else data.decode("utf-8", "replace")


def _cut(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[:_WIDEST]} …"
