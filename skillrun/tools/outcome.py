"""Outcome: what came of a call, as the text a model reads and as data for programs."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.launch.result import Result
    from skillrun.tools.asking import Question
    from skillrun.tools.task import Task

NO_OUTPUT: Final = "(no output)"
"""What stands for an empty result: some model APIs refuse an empty text, and then the conversation is lost."""
_DEEPEST: Final = 50
# What a terminal obeys, and what no model API takes: everything a text may hold but its characters and line ends.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


class ToolError(Exception):
    """A failure that the model should read about. `retryable` says that another attempt may succeed."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call: the tool's name as the model wrote it, its arguments, and the id that the provider gave it."""

    name: str
    arguments: Any = field(default_factory=dict)
    id: str = ""
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that comes with a result: its name (no path), its media type, its bytes."""

    name: str
    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call.

    `text` is never empty and is all that a model has to read. `structured` is the JSON value of the result,
    None when it has none. `result` is the receipt of a script's run. `saved` is the file of a long result.
    `waiting` is what the call waits for, and then the text is no result yet.
    """

    text: str
    is_error: bool = False
    structured: Any = None
    attachments: tuple[Attachment, ...] = ()
    retryable: bool = False
    result: Result | None = None
    saved: Path | None = None
    call: ToolCall | None = None
    waiting: Question | Task | None = None
    error: BaseException | None = field(default=None, compare=False, repr=False)


def failed(name: str, problem: BaseException) -> Outcome:
    """Return the outcome of a tool that raised: `Error (name): message`, and whether to try again."""
    message = spoken(problem)
    retryable = isinstance(problem, ToolError) and problem.retryable
    text = f"Error ({name}): {message}" + (" (retryable)" if retryable else "")
    return Outcome(clean(text), is_error=True, retryable=retryable, error=problem)


def spoken(problem: BaseException) -> str:
    """Return what an exception says, its name when it says nothing or can't."""
    try:
        return str(problem) or type(problem).__name__
    except Exception:  # noqa: BLE001 - its own `__str__` fails, and the call must come to an end all the same
        return type(problem).__name__


def error_of(name: str, message: str) -> Outcome:
    """Return an outcome that is an error of ours."""
    return Outcome(clean(f"Error ({name}): {message}"), is_error=True)


def of_value(value: Any) -> Outcome:
    """Return the outcome of what a tool returned: text, data as JSON, files, or texts and files together.

    A map with a text under `error` is a failure that the tool saw coming: it is marked as one and told as it is.
    Raises TypeError for a mixture of files and anything but texts, and for what JSON can't say.
    """
    if isinstance(value, Outcome):
        return dataclasses.replace(value, text=clean(value.text))
    if value is None or isinstance(value, str):
        return Outcome(clean(value or ""))
    if isinstance(value, Attachment):
        return Outcome(f"[file: {value.name}]", attachments=(value,))
    if isinstance(value, list | tuple) and any(isinstance(one, Attachment) for one in value):
        return _mixture(value)
    data = jsonable(value)
    wrong = isinstance(data, dict) and isinstance(data.get("error"), str) and bool(data["error"])
    return Outcome(clean(json.dumps(data, ensure_ascii=False)), is_error=wrong, structured=data)


def _mixture(value: Sequence[Any]) -> Outcome:
    if not all(isinstance(one, str | Attachment) for one in value):
        raise TypeError("a result with files holds texts and files, nothing else")
    files = tuple(one for one in value if isinstance(one, Attachment))
    texts = [one for one in value if isinstance(one, str)] or [f"[file: {one.name}]" for one in files]
    return Outcome(clean("\n\n".join(texts)), attachments=files)


def jsonable(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON data. Raises TypeError for what has no place there."""
    if depth > _DEEPEST:
        raise TypeError("the result is nested too deep")
    if isinstance(value, enum.Enum):
        return jsonable(value.value, depth + 1)
    if value is None or isinstance(value, str | bool | int):
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    return _container(value, depth)


def _container(value: Any, depth: int) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: jsonable(getattr(value, one.name), depth + 1) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(jsonable(key, depth + 1)): jsonable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Sequence | AbstractSet) and not isinstance(value, bytes | bytearray | memoryview):
        return [jsonable(item, depth + 1) for item in value]
    raise TypeError(f"a {type(value).__name__} can't be told to a model; return text or data")


def clean(text: str) -> str:
    """Return a text without control characters and half characters; never empty."""
    plain = _CONTROL.sub("", text.replace("\r\n", "\n"))
    plain = plain.encode("utf-8", "replace").decode()
    return plain if plain.strip() else NO_OUTPUT
