"""Entry: one call of a conversation, as one value with one state. A store keeps one row for each."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from skillrun.tools.asking import Answer, Question, Reaction, Settled
from skillrun.tools.outcome import jsonable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillrun.tools.outcome import ToolCall


class State(enum.Enum):
    """Where a call is. `answered` is final, and every call comes to it (the picture is in docs/explanation)."""

    READY = "ready"
    AWAITING_APPROVAL = "awaiting_approval"
    AWAITING_INPUT = "awaiting_input"
    PAUSED = "paused"
    RUNNING = "running"
    IN_DOUBT = "in_doubt"
    ANSWERED = "answered"


PEOPLE: Final = frozenset({State.AWAITING_APPROVAL, State.AWAITING_INPUT, State.IN_DOUBT})
"""States in which nothing goes on before a person has said something."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's word: whether the call may be made, whose word it is, when (seconds since 1970), and about what.

    `digest` is of the terms that were shown.
    """

    agreed: bool
    who: str
    when: float
    digest: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who makes a call, and until when.

    `until` counts on the clock of the boot `boot` of `host` (CLOCK_BOOTTIME), which nobody can set; `until_wall` is
    for other hosts, which have no other clock in common. `pid` and `born` tell the process from a later one.
    """

    host: str
    boot: str
    pid: int
    born: float
    until: float
    until_wall: float


@dataclass(frozen=True, slots=True)
class Entry:
    """One call.

    `seq` is the number of the reply in its conversation and `position` the call's place in it, both from 0: they
    are the key, because providers repeat and leave out their ids. `version` counts every change of the entry: a
    change is made only to the version that was read, so of two that come together one wins, and a process that
    was taken for dead can't bring its result any more. `terms` are what a person agrees to, with its digest.
    `task` is the state of a Task, `outcome` the result as JSON data.
    """

    conversation: str
    seq: int
    position: int
    call: ToolCall
    state: State = State.READY
    version: int = 0
    attempts: int = 0
    digest: str = ""
    terms: Mapping[str, Any] = field(default_factory=dict)
    decision: Decision | None = None
    settled: tuple[Settled, ...] = ()
    question: Question | None = None
    task: Mapping[str, Any] | None = None
    claim: Claim | None = None
    repeatable: bool = False
    expires: float | None = None
    outcome: Mapping[str, Any] | None = None

    @property
    def key(self) -> str:
        """The name of the call within its conversation: `2.0` is the first call of message 2."""
        return f"{self.seq}.{self.position}"

    @property
    def open(self) -> bool:
        """Whether it has no result yet."""
        return self.state is not State.ANSWERED


def to_data(entry: Entry) -> dict[str, Any]:
    """Return what changes of an entry as JSON data; its key and its call are kept beside it."""
    decision, claim, question = entry.decision, entry.claim, entry.question
    return {
        "digest": entry.digest,
        "terms": jsonable(dict(entry.terms)),
        "decision": None
        if decision is None
        else [decision.agreed, decision.who, decision.when, decision.digest, decision.reason],
        "settled": [
            {
                **_question_data(one.question),
                "reaction": one.answer.reaction.value,
                "values": jsonable(dict(one.answer.values)),
            }
            for one in entry.settled
        ],
        "question": None if question is None else _question_data(question),
        "task": entry.task,
        "claim": None
        if claim is None
        else [claim.host, claim.boot, claim.pid, claim.born, claim.until, claim.until_wall],
        "repeatable": entry.repeatable,
        "expires": entry.expires,
        "outcome": entry.outcome,
    }


def from_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an Entry that `to_data` wrote."""
    decision, claim, question = data["decision"], data["claim"], data["question"]
    return {
        **{key: data[key] for key in ("digest", "terms", "task", "repeatable", "expires", "outcome")},
        "decision": None if decision is None else Decision(*decision),
        "claim": None if claim is None else Claim(*claim),
        "question": None if question is None else _question(question),
        "settled": tuple(
            Settled(_question(one), Answer(Reaction(one["reaction"]), one["values"]))
            for one in data["settled"]
        ),
    }


def _question_data(question: Question) -> dict[str, Any]:
    return {
        "key": question.key,
        "message": question.message,
        "fields": jsonable(dict(question.fields)),
        "url": question.url,
    }


def _question(data: Mapping[str, Any]) -> Question:
    return Question(data["key"], data["message"], data["fields"], data["url"])
