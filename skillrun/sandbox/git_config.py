"""git's configuration files: what a text sets, in the grammar of git-config(1).

git itself is not asked: it would obey what it reads (law 10).
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST: Final = 1 << 20  # bytes of a file that are read; git's own bound is far above what anybody writes
_BLANK = re.compile(r"(?:\s+|[#;][^\n]*)+")
_SECTION = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:\\.|[^"\\\n])*)")?[ \t]*\]')
# A key, and a value that may be quoted in parts, go on after a backslash at the line's end, and end at a comment. Runs of
# plain characters stand outside of the repetitions, so that no input takes more than linear time, or memory for each character.
_SETTING = re.compile(
    r'([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=([^"\\#;\n]*(?:(?:\\[\s\S]|"[^"\\\n]*(?:\\[\s\S][^"\\\n]*)*")[^"\\#;\n]*)*))?[^\n]*'
)
_REST = re.compile(r"[^\n]*\n?")
_PART = re.compile(r'\\([\s\S])|(")|([ \t\r]+)|[^\\" \t\r]+')
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": "\b"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. Section and key are in lower case; a key without `=` has the value `true`."""

    section: str
    subsection: str
    key: str
    value: str

    @property
    def name(self) -> str:
        """Section and key, the subsection left out."""
        return f"{self.section}.{self.key}"


def settings(text: str) -> Iterator[Setting]:
    """Give every setting of a text, in order.

    git stops at a line it can't read; here the next one is tried, so that nothing hides behind it.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    section = subsection = ""
    at = 0
    while at < len(text):
        if found := _BLANK.match(text, at):
            pass
        elif found := _SECTION.match(text, at):
            section, _, old_form = found[1].lower().partition(".")
            subsection = old_form if found[2] is None else _ESCAPED.sub(r"\1", found[2]).partition("\0")[0]
        elif found := _SETTING.match(text, at):
            value = "true" if found[2] is None else _value(found[2])
            yield Setting(section, subsection, found[1].lower(), value)
        else:
            found = _REST.match(text, at)
        assert found is not None  # noqa: S101 - the last pattern matches anything
        at = max(found.end(), at + 1)


def _value(raw: str) -> str:
    """Take quotes, escapes and the blanks around a value out of it, as parse_value in git's config.c does.

    Blanks before the first character do not count, not even after a line that goes on. The value ends at a
    NUL, because git keeps it as a string of C.
    """
    value: list[str] = []
    blanks = ""
    quoted = False
    for part in _PART.finditer(raw):
        if part[3] and not quoted:
            blanks += part[3] if value else ""
            continue
        if blanks:
            value.append(blanks)
            blanks = ""
        if part[2]:
            quoted = not quoted
        elif part[1] is None:
            value.append(part[0])
        elif part[1] != "\n":
            value.append(_ESCAPES.get(part[1], part[1]))
    return "".join(value).partition("\0")[0]


def read(path: Path, *, follow: bool) -> str | None:
    """Return the text of a file, empty where there is none; None for what can't be judged.

    That is something else than a regular file, one above the cap, one that can't be opened; with
    `follow` false a link too, because a script may have made it (law 11). Raises PermissionError.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except PermissionError:
        raise
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        words = os.read(descriptor, _MOST + 1)
        return None if len(words) > _MOST else words.decode("utf-8", "surrogateescape")
    finally:
        os.close(descriptor)
