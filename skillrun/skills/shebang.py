"""The interpreter line: from the first bytes of a script to the command that starts it."""

from __future__ import annotations

import os
import re
from typing import Final

from skillrun.skills.model import Command, Starter

LINE_LIMIT: Final = 4096
"""Bytes of an interpreter line. Linux itself stops at 256; `env -S` lines of real skills stay below 120."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SPLIT_OPTION = re.compile(r"(?:-v?S|--split-string(?:=|[ \t]+))[ \t]*")
# One piece of a GNU `env -S` text. A `#` begins a comment at the start of a word only; `\c` ends the text.
_PIECE = re.compile(
    r"""(?P<blank>[ \t]+|\\_) | (?P<end>(?<![^ \t])\#.*|\\c.*) | '(?P<single>(?:[^'\\]|\\.)*)'
    | "(?P<double>(?:[^"\\$]|\\.)*)" | (?P<plain>[^ \t\\'"$]+|\\.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MEANING: Final = dict(zip("tnrfv_#$\\\"'", "\t\n\r\f\v #$\\\"'", strict=True))


class LineError(Exception):
    """An interpreter line that can't be followed; the text says why."""


def parse_shebang(head: bytes) -> tuple[Command, bool]:
    """Read the interpreter line at the start of a file that begins with `#!`.

    Returns the command, and whether the line ended in CRLF, which the kernel would take for a part of
    the interpreter's name. Raises LineError. `env` is looked through, with the `-S` form of GNU env;
    what would change the environment is refused, since the environment of a run is skillrun's.
    """
    raw, newline, _ = head[2:].partition(b"\n")
    if not newline and len(head) >= LINE_LIMIT:
        raise LineError(f"the interpreter line is longer than {LINE_LIMIT} bytes")
    line = os.fsdecode(raw.removesuffix(b"\r")).strip(" \t")
    if _CONTROL.search(line):
        raise LineError("the interpreter line holds a control character")
    # Linux hands everything behind the program over as one argument, other systems split it at blanks. Split is
    # what the author meant wherever the two differ: two options in one argument start nothing.
    program, *args = line.split() or [""]
    if not program:
        raise LineError("the interpreter line names no interpreter")
    if program.rpartition("/")[2] == "env":
        program, *args = _through_env(line.removeprefix(program).strip(" \t"))
    elif not program.startswith("/"):
        raise LineError(f"the interpreter `{program}` is not an absolute path")
    if "/" in program and not program.startswith("/"):
        raise LineError(f"`{program}` would be looked for in whatever folder the script is started from")
    return Command(Starter.SHEBANG, program, tuple(args)), raw.endswith(b"\r")


def _through_env(text: str) -> list[str]:
    """Return the program that `env TEXT` would start, and its arguments."""
    option = _SPLIT_OPTION.match(text)
    words = split_string(text[option.end() :]) if option else text.split()
    if words and words[0] == "--":
        words = words[1:]
    elif words and words[0].startswith("-"):
        raise LineError(
            f"the option `{words[0]}` of env changes the environment or folder, which is skillrun's to set"
        )
    if not words or not words[0]:
        raise LineError("the interpreter line names no interpreter behind env")
    if "=" in words[0]:
        name = words[0].partition("=")[0]
        raise LineError(f"env sets the variable `{name}`; the environment of a run is skillrun's to set")
    return words


def split_string(text: str) -> list[str]:
    r"""Split as GNU `env -S` does: quotes, its escapes (`\_` is a blank), `#` comments. Raises LineError.

    Source: coreutils manual, "env invocation", `-S`. `${NAME}` is refused: it reads the environment.
    """
    words: list[str] = []
    word: str | None = None
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise LineError(
                "`$` in an interpreter line reads the environment, which a run does not have"
                if "$" in text[at:]
                else "a quote or backslash in the interpreter line has no end"
            )
        at = piece.end()
        kind = piece.lastgroup
        if kind == "end":
            break
        if kind == "blank":
            words, word = ([*words, word] if word is not None else words), None
        elif kind == "single":
            word = (word or "") + re.sub(r"\\([\\'])", r"\1", piece["single"])
        else:
            word = (word or "") + _ESCAPE.sub(_unescape, piece[kind or 0])
    return words if word is None else [*words, word]


def _unescape(escape: re.Match[str]) -> str:
    if escape[1] not in _MEANING:
        raise LineError(f"`{escape[0]}` means nothing in an `env -S` line")
    return _MEANING[escape[1]]
