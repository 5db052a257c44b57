"""skillrun: the least-privilege runner for agent-skill scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from skillrun.conversation.ask_user import AskUser
    from skillrun.conversation.conversation import Conversation
    from skillrun.conversation.sqlite import SqliteStore
    from skillrun.errors import AdmissionError, ConfigError, SkillError, SkillrunError, UsageError
    from skillrun.host import Host, current_host
    from skillrun.launch.result import Result, Termination
    from skillrun.permissions.flags import Flags
    from skillrun.permissions.grant import Grant, Requirement
    from skillrun.problem import At, Problem, Severity
    from skillrun.runner import Runner
    from skillrun.running.call import Call, Progress, Reply
    from skillrun.running.handle import Handle
    from skillrun.tools.box import Toolbox
    from skillrun.tools.outcome import Attachment, Outcome, ToolCall, ToolError
    from skillrun.tools.selection import INHERIT, NONE
    from skillrun.tools.task import Task
    from skillrun.tools.tool import Tool, tool

__version__ = "0.1.0"

__all__ = [
    "INHERIT",
    "NONE",
    "AdmissionError",
    "AskUser",
    "At",
    "Attachment",
    "Call",
    "ConfigError",
    "Conversation",
    "Flags",
    "Grant",
    "Handle",
    "Host",
    "Outcome",
    "Problem",
    "Progress",
    "Reply",
    "Requirement",
    "Result",
    "Runner",
    "Severity",
    "SkillError",
    "SkillrunError",
    "SqliteStore",
    "Task",
    "Termination",
    "Tool",
    "ToolCall",
    "ToolError",
    "Toolbox",
    "UsageError",
    "__version__",
    "current_host",
    "tool",
]

_TOOLS = frozenset(
    {"Attachment", "INHERIT", "NONE", "Outcome", "Task", "Tool", "ToolCall", "ToolError", "Toolbox", "tool"}
)
_CONVERSATION = frozenset({"AskUser", "Conversation", "SqliteStore"})


def __getattr__(name: str) -> Any:
    """Load the library when one of its names is first asked for: `skillrun --version` needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # ruff: noqa: PLC0415 - loading late is what this function is for
    homes: tuple[ModuleType, ...]
    if name in _TOOLS:
        from skillrun.tools import box, outcome, selection, task
        from skillrun.tools import tool as tools

        homes = (box, outcome, selection, task, tools)
    elif name in _CONVERSATION:
        from skillrun.conversation import ask_user, conversation, sqlite

        homes = (ask_user, conversation, sqlite)
    else:
        if name == "Handle":  # it brings futures and logging, which the command line does without
            from skillrun.running import handle

            return handle.Handle

        from skillrun import errors, host, problem, runner
        from skillrun.launch import result
        from skillrun.permissions import flags, grant
        from skillrun.running import call

        homes = (errors, host, problem, runner, result, flags, grant, call)
    globals().update(
        {public: getattr(home, public) for home in homes for public in __all__ if hasattr(home, public)}
    )
    return globals()[name]


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted(__all__)
