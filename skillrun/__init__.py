"""skillrun: the least-privilege runner for agent-skill scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillrun.errors import ConfigError, SkillError, SkillrunError, UsageError
    from skillrun.host import Host, current_host
    from skillrun.launch.result import Result, Termination
    from skillrun.permissions.flags import Flags
    from skillrun.permissions.grant import Grant, Requirement
    from skillrun.problem import At, Problem, Severity
    from skillrun.runner import Runner

__version__ = "0.1.0"

# Where each public name lives. They are loaded when they are first asked for, so that `skillrun --version`
# and a `from skillrun import Problem` do not pay for the whole library.
_HOMES = {
    "At": "skillrun.problem",
    "ConfigError": "skillrun.errors",
    "Flags": "skillrun.permissions.flags",
    "Grant": "skillrun.permissions.grant",
    "Host": "skillrun.host",
    "Problem": "skillrun.problem",
    "Requirement": "skillrun.permissions.grant",
    "Result": "skillrun.launch.result",
    "Runner": "skillrun.runner",
    "Severity": "skillrun.problem",
    "SkillError": "skillrun.errors",
    "SkillrunError": "skillrun.errors",
    "Termination": "skillrun.launch.result",
    "UsageError": "skillrun.errors",
    "current_host": "skillrun.host",
}

__all__ = [
    "At",
    "ConfigError",
    "Flags",
    "Grant",
    "Host",
    "Problem",
    "Requirement",
    "Result",
    "Runner",
    "Severity",
    "SkillError",
    "SkillrunError",
    "Termination",
    "UsageError",
    "__version__",
    "current_host",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - only when a name is asked for

    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
