"""Result: what a run did, what it was allowed, and what was enforced."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.launch.capture import Captured
    from skillrun.permissions.grant import Grant
    from skillrun.problem import Problem
    from skillrun.sandbox.guarantee import Guarantees
    from skillrun.skills.model import Interpreter, Skill


class Termination(enum.Enum):
    """How a run ended. `REFUSED` and `FAILED_TO_START` mean that the script never ran."""

    EXITED = "exited"
    SIGNALED = "signaled"
    TIMED_OUT = "timed_out"
    MEMORY_LIMIT = "memory_limit"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    FAILED_TO_START = "failed_to_start"


@dataclass(frozen=True, slots=True)
class Denial:
    """Something the sandbox stopped, or seems to have: `evidence` is `kernel` or `guess`."""

    operation: str
    path: Path | None
    evidence: str
    fix: str | None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run used: processor seconds, and the peak memory of its largest process in bytes."""

    cpu_s: float
    peak_rss_bytes: int


@dataclass(frozen=True, slots=True)
class Result:
    """One run. Everything that is unknown or did not happen is None; `leftovers` were killed at the end."""

    skill: Skill
    digest: str
    script_name: str
    script_path: Path
    interpreter: Interpreter | None
    argv: tuple[str, ...]
    cwd: Path
    termination: Termination
    exit_code: int | None
    signal: int | None
    error: Problem | None
    duration_s: float
    timeout_s: float
    stdout: Captured
    stderr: Captured
    json: Any
    leftovers: int
    backend: str | None
    level: int | None
    guarantees: Guarantees | None
    grant: Grant
    denials: tuple[Denial, ...] = ()
    violations: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    usage: Usage | None = None

    @property
    def ok(self) -> bool:
        """Whether the script ran to its end and exited with 0."""
        return self.termination is Termination.EXITED and self.exit_code == 0
