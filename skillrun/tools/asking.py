"""Asking: a tool asks a person something while it works. The call then waits, and is made again with the answer."""

from __future__ import annotations

import contextlib
import contextvars
import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.outcome import ToolError, clean, jsonable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_QUESTIONS: Final = 100
"""Questions of one call: one that asks anew each time it is made would never come to an end."""
_LONGEST: Final = 4_000  # characters of a question


class Reaction(enum.Enum):
    """What a person did with a question."""

    ACCEPTED = "accepted"
    DECLINED = "declined"


@dataclass(frozen=True, slots=True)
class Question:
    """A question: its key within the call, the words, and the fields to fill or the page to visit.

    `fields` is a JSON Schema of an object, `url` a page; a question has one of them or neither.
    """

    key: str
    message: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person answered: `answer["name"]` is the value of a field, None when it was left out."""

    reaction: Reaction
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        """Whether the person answered."""
        return self.reaction is Reaction.ACCEPTED

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name)


@dataclass(frozen=True, slots=True)
class Settled:
    """A question that was answered."""

    question: Question
    answer: Answer


class Asked(BaseException):
    """A question without an answer: it leaves the tool, and the call waits."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.key)
        self.question = question


class InputRequiredError(ToolError):
    """A tool asked where nobody can answer."""

    def __init__(self, question: Question) -> None:
        super().__init__(f"it asks a person, and nobody can be asked here: {question.message}")
        self.question = question


class Answers:
    """The answers of one call. Each time the call is made, its questions have to come again in the same words.

    `letter` begins the keys of questions without a name: what carries a call on asks others than what began it.
    """

    def __init__(self, settled: Sequence[Settled] = (), *, letter: str = "q") -> None:
        self._settled = {one.question.key: one for one in settled}
        self._keys: list[str] = []
        self._letter = letter

    def next_key(self) -> str:
        """Return the key of a question that has no name: `q0`, `q1`, …, in the order of asking."""
        return f"{self._letter}{len(self._keys)}"

    def give(self, question: Question) -> Answer:
        """Return the answer, or raise Asked. ToolError when another question had this key, or this one came twice."""
        if question.key in self._keys:
            raise ToolError(f"it asks `{question.key}` twice in one call")
        self._keys.append(question.key)
        found = self._settled.get(question.key)
        if found is None:
            if len(self._settled) >= MOST_QUESTIONS:
                raise ToolError(f"it asks more than {MOST_QUESTIONS} questions")
            raise Asked(question)
        if found.question != question:
            # An answer to something else would be a wrong one (facts/agents B2).
            raise ToolError(f"it asks something else as `{question.key}` than when it was answered")
        return found.answer

    @property
    def settled(self) -> tuple[Settled, ...]:
        """What was answered so far."""
        return tuple(self._settled.values())


_answers: contextvars.ContextVar[Answers | None] = contextvars.ContextVar("answers", default=None)


@contextlib.contextmanager
def answering(answers: Answers) -> Iterator[None]:
    """Let questions of the calls in this block find their answers, or leave the call waiting."""
    token = _answers.set(answers)
    try:
        yield
    finally:
        _answers.reset(token)


def current_answers() -> Answers | None:
    """Return the answers of the call that is made, None where nobody can be asked."""
    return _answers.get()


def ask(
    message: str, *, key: str | None = None, url: str | None = None, **fields: Mapping[str, Any]
) -> Answer:
    """Ask a person, and return the answer.

    `fields` are JSON Schemas of what to fill in, `required=True` in those that must be; `url` is a page to visit
    instead. In a conversation the call waits, and is made again from its start: what stands before `ask` is done
    twice, so ask first. `key` is the question's own name; without one it is its place among the questions.

    Raises InputRequiredError where nobody can be asked.
    """
    answers = current_answers()
    named = key or (answers.next_key() if answers is not None else "q0")
    question = question_of(named, message, schema_of(fields), url)
    if answers is None:
        raise InputRequiredError(question)
    return answers.give(question)


def question_of(key: str, message: str, fields: Mapping[str, Any], url: str | None) -> Question:
    """Return a question whose words are clean. ToolError for fields that are no schema, and for a page that is none."""
    if url is not None:
        if fields:
            raise ToolError("a question has fields or a page to visit, not both")
        if not (isinstance(url, str) and url.startswith(("https://", "http://"))):
            raise ToolError("the page of a question is no http or https address")
        url = clean(url)
    if fields:
        _check(fields)
    return Question(clean(key)[:64], clean(message)[:_LONGEST], fields, url)


def schema_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with these fields."""
    if not fields:
        return {}
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, given in fields.items():
        if not hasattr(given, "items"):
            raise ToolError(f"the field `{name}` of a question is no map")
        one = dict(given)
        if one.pop("required", False) is True:
            required.append(name)
        properties[name] = jsonable(one)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _check(schema: Mapping[str, Any]) -> None:
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - heavy

    kind = schema.get("type")
    if kind != "object" or not isinstance(schema.get("properties"), dict):
        raise ToolError("the fields of a question are no schema of an object")
    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError) as wrong:
        raise ToolError("the fields of a question are no JSON Schema") from wrong
