"""Transitions: how a call goes from one state to another. All of them, and all are pure: an entry in, an entry out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from skillrun.conversation.entry import Decision, Entry, State
from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.tools.asking import Answer, Question, Reaction, Settled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillrun.conversation.claims import Here
    from skillrun.conversation.entry import Claim
    from skillrun.tools.terms import Terms

MOST_ATTEMPTS: Final = 3
"""Times that a call which only reads is made before a person is asked (facts/agents B2)."""


class AlreadyDecidedError(UsageError):
    """The call does not wait for this any more, or what it waits for is not what was looked at."""


def dated(old: Entry, new: Entry, now: float) -> Entry:
    """Return a changed entry with the time at which it came into its state."""
    return new if new.state is old.state else replace(new, since=now)


def proposed(entry: Entry, terms: Terms | None) -> Entry:
    """Return a call of a new reply: ready, or with terms that a person has to agree to first."""
    if terms is None:
        return replace(entry, state=State.READY)
    return replace(entry, state=State.AWAITING_APPROVAL, digest=terms.digest, terms=terms.about)


def asked_again(entry: Entry, terms: Terms) -> Entry:
    """Return a call that was agreed to and is something else now: a person has to look at the new terms."""
    return replace(
        entry,
        state=State.AWAITING_APPROVAL,
        digest=terms.digest,
        terms={**terms.about, "before": {key: entry.terms[key] for key in entry.terms if key != "before"}},
        decision=None,
        claim=None,
        task=None,
        attempts=0,
        expires=None,
    )


def decided(entry: Entry, decision: Decision) -> Entry:
    """Return a call with a person's word: ready, or answered with the refusal. The same word twice is no mistake.

    Raises AlreadyDecidedError when another word was given, or the word was about other terms.
    """
    before = entry.decision
    if before is not None and (before.agreed, before.digest) == (decision.agreed, decision.digest):
        return entry
    if entry.state is not State.AWAITING_APPROVAL:
        raise _already(entry, "wait for anybody's agreement")
    if decision.digest != entry.digest:
        raise _error(entry, "it has changed since it was shown", "look at it again")
    if not decision.agreed:
        return answered(replace(entry, decision=decision), refusal(entry, decision.reason))
    return replace(entry, state=State.READY, decision=decision, expires=None)


def refusal(entry: Entry, reason: str = "") -> dict[str, Any]:
    """Return the result of a call that a person said no to."""
    why = f": {reason}" if reason else ""
    return _error_data(entry, f"a person said no to this call; it was not made{why}")


def claimed(entry: Entry, claim: Claim, *, repeatable: bool) -> Entry:
    """Return a call that a process makes now, one that is ready or that waits for a task."""
    if entry.state not in {State.READY, State.PAUSED}:
        raise _already(entry, "wait to be made")
    return replace(
        entry, state=State.RUNNING, claim=claim, attempts=entry.attempts + 1, repeatable=repeatable
    )


def waiting(entry: Entry, question: Question, *, task: Mapping[str, Any] | None = None) -> Entry:
    """Return a call that waits for an answer; with a task it was `resume` that asked, and it is `resume` that gets it."""
    return replace(
        entry,
        state=State.AWAITING_INPUT,
        question=question,
        task=task,
        claim=None,
        attempts=0,
        expires=None,
    )


def paused(entry: Entry, task: Mapping[str, Any], claim: Claim | None = None) -> Entry:
    """Return a call that waits for a task. No process holds it, unless the work is in that process (`claim`)."""
    return replace(entry, state=State.PAUSED, task=task, claim=claim, attempts=0)


def answered(entry: Entry, outcome: Mapping[str, Any]) -> Entry:
    """Return a call with its result. There is only ever one."""
    if not entry.open:
        raise _already(entry, "wait for a result")
    return replace(entry, state=State.ANSWERED, outcome=outcome, claim=None, task=None, question=None)


def settled(entry: Entry, key: str, answer: Answer) -> Entry:
    """Return a call whose question was answered or declined: it is made again. The same answer twice is no mistake."""
    for one in entry.settled:
        if one.question.key == key and one.answer == answer:
            return entry
    question = entry.question
    if entry.state is not State.AWAITING_INPUT or question is None or question.key != key:
        raise _already(entry, f"wait for an answer to `{key}`")
    return replace(
        entry,
        state=_next(entry),
        question=None,
        settled=(*entry.settled, Settled(question, answer)),
        expires=None,
    )


def reclaimed(entry: Entry, here: Here) -> Entry:
    """Return a call whose process is gone: made once more where it can only have read, else in doubt.

    What only looks at a task may look as often as it likes.
    """
    if entry.state is not State.RUNNING or entry.claim is None or not here.lapsed(entry.claim):
        return entry
    again = entry.repeatable and (entry.task is not None or entry.attempts < MOST_ATTEMPTS)
    return replace(entry, state=_next(entry) if again else State.IN_DOUBT, claim=None)


def retried(entry: Entry) -> Entry:
    """Return a call in doubt that a person wants made again."""
    if entry.state is not State.IN_DOUBT:
        raise _already(entry, "stand in doubt")
    return replace(entry, state=_next(entry), attempts=0)


def given_up(entry: Entry) -> Entry:
    """Return a call in doubt with the truth for a result: nobody knows whether it was done."""
    if entry.state is not State.IN_DOUBT:
        raise _already(entry, "stand in doubt")
    message = (
        "the process that made this call has died; it may have been done, in part or whole, or not at all"
    )
    return answered(entry, _error_data(entry, message))


def expired(entry: Entry, now: float) -> Entry:
    """Return a call whose time to be agreed to or answered is over: nobody agreed, nobody answered."""
    if entry.expires is None or now <= entry.expires:
        return entry
    if entry.state is State.AWAITING_APPROVAL:
        return answered(entry, refusal(entry, "nobody agreed in time"))
    if entry.state is State.AWAITING_INPUT and entry.question is not None:
        return settled(entry, entry.question.key, Answer(Reaction.DECLINED))
    return entry


def cancelled(entry: Entry) -> Entry:
    """Return a call that nobody wants any more; what still runs can't bring its result."""
    if not entry.open:
        return entry
    if entry.state is State.RUNNING:
        message = "it was cancelled while it was made; it may have been done in part"
    elif entry.state is State.IN_DOUBT:
        return given_up(entry)
    else:
        message = "it was cancelled and not made"
    return answered(entry, _error_data(entry, message))


def _next(entry: Entry) -> State:
    """Return the state in which a call is made, or its task is carried on."""
    return State.READY if entry.task is None else State.PAUSED


def _error_data(entry: Entry, message: str) -> dict[str, Any]:
    return {"text": f"Error ({entry.call.name[:100]}): {message}", "is_error": True}


def _already(entry: Entry, what: str) -> AlreadyDecidedError:
    return _error(entry, f"it does not {what}; it is {entry.state.value.replace('_', ' ')}")


def _error(entry: Entry, message: str, help_: str | None = None) -> AlreadyDecidedError:
    named = f"the call {entry.key} of conversation `{entry.conversation}`: {message}"
    return AlreadyDecidedError(error("call-state", named, help=help_))
