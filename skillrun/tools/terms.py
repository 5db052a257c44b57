"""Terms: all that a person agrees to with one call, as one digest, and as data to be shown."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.outcome import ToolError
from skillrun.tools.script_tool import ScriptTool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillrun.launch.ready import Ready
    from skillrun.tools.tool import Tool

_VERSION: Final = 1  # of what goes into a digest


class TermsChangedError(ToolError):
    """What is about to start is not what a person agreed to."""

    def __init__(self) -> None:
        super().__init__("what was agreed to has changed since", retryable=True)


@dataclass(frozen=True, slots=True)
class Terms:
    """What one call would be.

    `digest` covers the tool's identity, the exact arguments (standard input is one of them), and of a script its
    version, its interpreter, the grant, the workspace and the least enforcement. `about` is the same as JSON data for people.
    """

    digest: str
    about: Mapping[str, Any]


def terms_of(tool: Tool, arguments: Mapping[str, Any]) -> Terms:
    """Return the terms of a call with checked arguments; looks at the disk. Raises SkillrunError as a run does."""
    if isinstance(tool, ScriptTool):
        return of_ready(tool, arguments, tool.preview(dict(arguments)).ready)
    kind = type(tool)
    named = getattr(tool, "identity", None) or (kind.__module__, kind.__qualname__, tool.full_name)
    about = {"tool": tool.full_name, "identity": [str(part) for part in named]}
    return Terms(_digest(about, tool.input_schema, arguments), about)


def of_ready(tool: ScriptTool, arguments: Mapping[str, Any], ready: Ready) -> Terms:
    """Return the terms of a script's run as far as it is known before its start."""
    identity, subject = tool.identity, ready.subject
    grant = ready.grant
    about = {
        "tool": tool.full_name,
        "identity": [identity.root, identity.folder, identity.script, *identity.subcommand],
        "skill": ready.skill.key,
        "folder": str(ready.skill.path),
        "script": subject.script.name,
        "version": ready.digest,
        "interpreter": None if subject.interpreter is None else str(subject.interpreter.real),
        "workspace": str(ready.place.workspace),
        "require": grant.require.value,
        "unconfined": grant.unconfined is not None,
        "granted": [[one.capability.value, str(one.value)] for one in grant.granted],
        "denied": sorted(str(one.path) for one in grant.denied),
    }
    # The scratch folder has another name in each run, and is the same right.
    scratch = str(ready.place.scratch)
    plain = json.loads(json.dumps(about).replace(json.dumps(scratch)[1:-1], "${scratch}"))
    return Terms(_digest(plain, None, arguments), plain)


def agreed(tool: ScriptTool, arguments: Mapping[str, Any], digest: str, ready: Ready) -> None:
    """Compare what is about to start with what a person agreed to. Raises TermsChangedError."""
    if of_ready(tool, arguments, ready).digest != digest:
        raise TermsChangedError


def _digest(*parts: Any) -> str:
    text = json.dumps([_VERSION, *parts], sort_keys=True, ensure_ascii=True, default=str)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
