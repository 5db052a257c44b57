"""AskUser: a ready tool with which a model asks the person at the other end something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.outcome import ToolError
from skillrun.tools.told import prose
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from typing import TextIO

_LONGEST: Final = 2_000  # characters of a question
_MOST: Final = 20  # choices


class AskUser(Tool):
    """Ask the user a question, with choices to pick from if there are any, and get the answer.

    With streams it asks there and waits. Without them the call waits in its conversation, and nobody is held up. It
    never reads the process's standard input by itself: a test or a server would hang on it.
    """

    tool_name = "ask_user"
    description = "Ask the user a question and get the answer: an open one, or one with choices. Use it when only the user can know."

    def __init__(
        self, *, reading: TextIO | None = None, writing: TextIO | None = None, asker: str = "assistant"
    ) -> None:
        super().__init__()
        if (reading is None) != (writing is None):
            raise TypeError("AskUser takes both streams or none")
        self._reading = reading
        self._writing = writing
        self._asker = asker

    def execute(self, question: str, choices: list[str] | None = None, default: str | None = None) -> str:
        """Ask.

        Args:
            question: what to ask, as the user should read it
            choices: answers to choose from; other answers are possible too
            default: the answer when the user just presses Enter
        """
        choices = list(choices or ())[:_MOST]
        if self._reading is None or self._writing is None:
            return self._waiting(question, choices, default)
        self._writing.write(_prompt(self._asker, question, choices, default))
        self._writing.flush()
        line = self._reading.readline()
        if not line:
            raise ToolError("nobody answered")
        return _chosen(line.strip(), choices, default)

    def _waiting(self, question: str, choices: list[str], default: str | None) -> str:
        field: dict[str, Any] = {"type": "string", "title": "Answer", "required": default is None}
        if choices:
            field["description"] = "; ".join(f"{number}. {one}" for number, one in enumerate(choices, 1))
        if default is not None:
            field["default"] = default
        answer = self.ask(question, answer=field)
        if not answer.accepted:
            raise ToolError("the user did not want to answer")
        return _chosen(str(answer["answer"] or "").strip(), choices, default)


def _prompt(asker: str, question: str, choices: list[str], default: str | None) -> str:
    """Return what a person reads. What the model wrote can't look like a line of anybody else (law 12)."""
    asked = _line(question).replace("\n", "\n  ")
    numbered = "".join(f"  {number}. {_line(one)}\n" for number, one in enumerate(choices, 1))
    usual = f"  (Enter for: {_line(default)})\n" if default is not None else ""
    return f"\n[{_line(asker)}] {asked}\n{numbered}{usual}> "


def _line(text: str) -> str:
    return prose(text, _LONGEST)


def _chosen(said: str, choices: list[str], default: str | None) -> str:
    if not said:
        if default is None:
            raise ToolError("the user gave no answer")
        return default
    if said.isdecimal() and 1 <= int(said) <= len(choices):
        return choices[int(said) - 1]
    return next((one for one in choices if one.casefold() == said.casefold()), said)
