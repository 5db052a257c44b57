"""Call and Reply: one run as plain data, and what came of it."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.errors import UsageError
from skillrun.problem import error

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.errors import SkillrunError
    from skillrun.launch.result import Result
    from skillrun.permissions.access import NamedPath
    from skillrun.permissions.flags import Flags
    from skillrun.skills.model import Skill


@dataclass(frozen=True, slots=True)
class Call:
    """What `Runner.run` takes, as one value that can be compared, pickled and sent elsewhere.

    `skill` is a key, a folder, or a Skill; `timeout` in seconds can only shorten. `named` are files that
    arguments of a tool name by parameters that declare an access. `trace` asks for the kernel's own word on
    what was denied. `answers` is JSON that a script with an events pipe finds in `SKILLRUN_ANSWERS`. The rest is told at `Runner.run`.
    """

    skill: Skill | Path | str
    script: str | None = None
    arguments: tuple[str, ...] = ()
    stdin: bytes = b""
    timeout: float | None = None
    strict: bool = False
    flags: Flags | None = None
    typed: bool = False
    trace: bool = False
    named: tuple[NamedPath, ...] = ()
    answers: str = ""

    def checked(self) -> Call:
        """Return the call. UsageError for what no program can be given: a text with NUL or half a character, no time."""
        texts = [("the name of the skill", self.skill), ("the name of the script", self.script)]
        texts += [("the answers", self.answers)]
        texts += [(f"argument {place}", word) for place, word in enumerate(self.arguments, 1)]
        for what, text in texts:
            if isinstance(text, str | os.PathLike) and not _passable(os.fspath(text)):
                message = f"{what} holds a NUL or half of a surrogate pair, which no program can be given"
                raise UsageError(error("call-text", message))
        if self.timeout is not None and math.isnan(self.timeout):
            raise UsageError(error("call-timeout", "the timeout is not a number of seconds"))
        given: object = self.stdin  # a text would be found out only when the script has started
        if not isinstance(given, bytes | bytearray | memoryview):
            message = f"stdin is {type(given).__name__}, and a script reads bytes"
            raise UsageError(error("call-stdin", message, help="encode it: `text.encode()`"))
        return self


def _passable(text: str) -> bool:
    """Whether a text can be an argument (execve(2)); stray bytes of a name are told as PEP 383 does."""
    try:
        return "\0" not in text and bool(os.fsencode(text) or True)
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one call of many: a Result, or the error that `Runner.run` would have raised.

    `index` counts the calls from 0. Exactly one of `result` and `error` is set.
    """

    index: int
    call: Call
    result: Result | None = None
    error: SkillrunError | None = None

    @property
    def ok(self) -> bool:
        """Whether the script ran to its end and exited with 0."""
        return self.result is not None and self.result.ok


@dataclass(frozen=True, slots=True)
class Progress:
    """How far many calls are: `ended` of `total`, None when nobody knows how many come; `reply` is the latest."""

    ended: int
    total: int | None
    reply: Reply
