"""Call and Reply: one run as plain data, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.errors import SkillrunError
    from skillrun.launch.result import Result
    from skillrun.permissions.flags import Flags
    from skillrun.skills.model import Skill


@dataclass(frozen=True, slots=True)
class Call:
    """What `Runner.run` takes, as one value that can be compared, pickled and sent elsewhere.

    `skill` is a key, a folder, or a Skill; `timeout` in seconds can only shorten. The rest is told at
    `Runner.run`.
    """

    skill: Skill | Path | str
    script: str | None = None
    arguments: tuple[str, ...] = ()
    stdin: bytes = b""
    timeout: float | None = None
    strict: bool = False
    flags: Flags | None = None
    typed: bool = False


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
