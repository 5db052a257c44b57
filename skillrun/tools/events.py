"""Events: the JSON lines that a script writes to $SKILLRUN_EVENTS_FD while it works: progress, and questions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skillrun.launch.capture import Captured
from skillrun.tools.asking import MOST_QUESTIONS, Question, question_of, schema_of
from skillrun.tools.outcome import ToolError, clean

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_LINE: Final = 8 << 10
"""Bytes of one event; what is longer is dropped up to its end."""
MOST_EVENTS: Final = 1_000
"""Events of one run that are told; the rest is drained and dropped, so a script is never held up by it."""
_LONGEST_MESSAGE: Final = 500
_LARGEST: Final = 1e15


@dataclass(frozen=True, slots=True)
class Progress:
    """What a tool says about its work: a message, and how far it is of how much, where it counts."""

    message: str
    value: float | None = None
    total: float | None = None


class EventSink:
    """Takes the bytes of the events pipe, tells each progress line and keeps the questions. The rest is dropped.

    `wrong` says what is wrong with a question that can't be asked.
    """

    def __init__(self, tell: Callable[[Progress], None]) -> None:
        self._tell = tell
        self._line = bytearray()
        self._skipping = False
        self._count = 0
        self._seen = 0
        self.questions: list[Question] = []
        self.wrong: str | None = None

    def ready(self) -> int | None:
        """Return None: there is always room."""
        return None

    def room(self) -> int:
        """Return how much is read at once."""
        return LONGEST_LINE

    def feed(self, chunk: bytes) -> None:
        """Take bytes; each line that ends in them is told. A listener that fails is the listener's own trouble."""
        self._seen += len(chunk)
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._add(line)
            self._end()
        self._add(rest)

    def captured(self) -> Captured:
        """Describe what came: nothing is kept."""
        return Captured("", self._seen, truncated=False)

    def _add(self, piece: bytes) -> None:
        if self._skipping or len(self._line) + len(piece) > LONGEST_LINE:
            self._skipping = True
            self._line.clear()
        else:
            self._line += piece

    def _end(self) -> None:
        line, skipping = bytes(self._line), self._skipping
        self._line.clear()
        self._skipping = False
        if skipping or self._count >= MOST_EVENTS or not line.strip():
            return
        try:
            event = read_event(line, len(self.questions))
        except ToolError as wrong:
            self.wrong = self.wrong or str(wrong)
            return
        if isinstance(event, Progress):
            self._count += 1
            self._tell(event)
        elif event is not None and len(self.questions) <= MOST_QUESTIONS:
            self.questions.append(event)


def read_event(line: bytes, asked: int = 0) -> Progress | Question | None:
    """Return the progress or the question that one line says; None for anything else.

    `asked` is how many questions came before. Raises ToolError for a question that can't be asked.
    """
    try:
        event: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    if isinstance(event.get("ask"), str):
        return _question(event, asked)
    if not isinstance(event.get("progress"), str):
        return None
    return Progress(
        clean(event["progress"])[:_LONGEST_MESSAGE], _number(event.get("value")), _number(event.get("total"))
    )


def _question(event: dict[str, Any], asked: int) -> Question:
    name, fields, url = event.get("name"), event.get("fields") or {}, event.get("url")
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise ToolError("the name of a question is no text")
    if not isinstance(fields, dict):
        raise ToolError("the fields of a question are no map")
    return question_of(name or f"q{asked}", event["ask"], schema_of(fields), url)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -_LARGEST <= value <= _LARGEST else None  # NaN is neither, and a long integer is no float
