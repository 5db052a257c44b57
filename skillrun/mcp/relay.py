"""Relay: the questions of another server, passed on to whoever answers for the call that it works at.

Nobody waits on an open call: the server is told that the person cancelled, its answer counts for nothing, and the
call waits in its conversation. With the answer it is made once more, and the server asks again.
"""

from __future__ import annotations

import contextlib
import contextvars
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types

from skillrun.tools.asking import (
    Answer,
    Answers,
    Asked,
    InputRequiredError,
    Question,
    current_answers,
    question_of,
)
from skillrun.tools.outcome import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CANCEL: Final = types.ElicitResult(action="cancel")


class _Open:
    """One call that a server works at."""

    def __init__(self, answers: Answers | None) -> None:
        self._answers = answers
        self._question: Question | None = None
        self._problem: ToolError | None = None

    def answered(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Answer a question; one that nobody has answered yet ends the questions of this call."""
        if self._question is not None or self._problem is not None:
            return _CANCEL
        key = self._answers.next_key() if self._answers is not None else "q0"
        try:
            question = question_from(key, params)
            if self._answers is None:
                self._question = question
                return _CANCEL
            answer = self._answers.give(question)
        except Asked as asked:
            self._question = asked.question
            return _CANCEL
        except ToolError as wrong:
            self._problem = wrong
            return _CANCEL
        return answer_of(answer)

    def check(self) -> None:
        """Raise Asked for a question that waits, InputRequiredError where nobody can be asked, ToolError for a wrong one."""
        if self._problem is not None:
            raise self._problem
        if self._question is not None:
            if self._answers is None:
                raise InputRequiredError(self._question)
            raise Asked(self._question)


class Relay:
    """The questions of one server. It is the SDK's elicitation callback."""

    def __init__(self) -> None:
        self._calls: list[_Open] = []
        self._own: contextvars.ContextVar[_Open | None] = contextvars.ContextVar("own", default=None)

    @contextlib.contextmanager
    def call(self) -> Iterator[_Open]:
        """Take the questions that come while a call is made in this block, in the thread of its maker."""
        made = _Open(current_answers())
        self._calls.append(made)
        token = self._own.set(made)
        try:
            yield made
        finally:
            self._own.reset(token)
            self._calls.remove(made)

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG002 - the SDK's signature
        """Answer a question of the server.

        In the era of the handshake a question does not say which call it is for: with several under way it is
        anybody's, and is not passed on.
        """
        calls = list(self._calls)
        found = self._own.get() or (calls[0] if len(calls) == 1 else None)
        return _CANCEL if found is None else found.answered(params)


def answer_of(answer: Answer) -> types.ElicitResult:
    """Return a person's answer in the words of the protocol."""
    if not answer.accepted:
        return types.ElicitResult(action="decline")
    return types.ElicitResult(action="accept", content=dict(answer.values))


def question_from(key: str, params: types.ElicitRequestParams) -> Question:
    """Return what a server asks as a question of ours. Raises ToolError for one that can't be asked."""
    if isinstance(params, types.ElicitRequestURLParams):
        return question_of(key, params.message, {}, params.url)
    given = params.requested_schema
    fields = {
        "type": "object",
        "properties": given.get("properties", {}),
        "required": given.get("required", []),
        "additionalProperties": False,
    }
    return question_of(key, params.message, fields if fields["properties"] else {}, None)
