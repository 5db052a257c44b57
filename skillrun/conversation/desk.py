"""Desk: where people settle the calls that wait for them. It needs the store alone: no model, no tool, no runner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from skillrun.conversation import transitions
from skillrun.conversation.claims import Here
from skillrun.conversation.entry import PEOPLE, Decision, Entry, State
from skillrun.errors import UsageError
from skillrun.problem import error
from skillrun.tools.arguments import ArgumentsError, check
from skillrun.tools.asking import Answer, Reaction
from skillrun.tools.outcome import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillrun.conversation.store import Store

_TRIES: Final = 20  # somebody else changes the same call at the same moment
_LONGEST: Final = 1_000  # characters of a reason


@dataclass(frozen=True, slots=True)
class Desk:
    """Settles calls of one conversation. `who` is written beside every word that is given.

    Each word is good for one call, as it was shown: give the `digest` that was looked at, and a call that has
    changed since is not decided. Raises UsageError for a call that is not there, AlreadyDecidedError for one
    that waits for something else by now.
    """

    store: Store
    conversation: str
    who: str = ""
    here: Here = field(default_factory=Here)

    def waiting(self) -> list[Entry]:
        """Return the calls that wait for a person."""
        return [one for one in map(self._tidy, self.open()) if one.state in PEOPLE]

    def open(self) -> list[Entry]:
        """Return the calls without a result."""
        return self.store.entries(self.conversation, open_only=True)

    def entry(self, key: str) -> Entry:
        """Return a call by its key."""
        for one in self.store.entries(self.conversation):
            if one.key == key:
                return one
        message = f"there is no call `{key}` in the conversation `{self.conversation}`"
        raise UsageError(error("no-such-call", message, help="`skillrun pending` lists the calls that wait"))

    def approve(self, key: str, *, digest: str | None = None) -> Entry:
        """Agree to one call. It is not made yet: whoever carries the conversation on does."""
        return self._decide(key, agreed=True, digest=digest)

    def deny(self, key: str, *, digest: str | None = None, reason: str = "") -> Entry:
        """Say no to one call; the model reads that, and the reason."""
        return self._decide(key, agreed=False, digest=digest, reason=reason)

    def answer(
        self, key: str, values: Mapping[str, Any] | None = None, *, question: str | None = None
    ) -> Entry:
        """Answer a call's question; the values have to fit its fields. UsageError says what does not."""

        def change(entry: Entry) -> Entry:
            asked = _question(entry, question)
            return transitions.settled(entry, asked, _answer(entry, asked, values or {}))

        return self._change(key, change)

    def decline(self, key: str, *, question: str | None = None) -> Entry:
        """Leave a call's question without an answer; the tool is told so."""
        told = Answer(Reaction.DECLINED)
        return self._change(key, lambda entry: transitions.settled(entry, _question(entry, question), told))

    def retry(self, key: str) -> Entry:
        """Have a call made again whose process died; it may have been done already."""
        return self._change(key, transitions.retried)

    def give_up(self, key: str) -> Entry:
        """End a call whose process died: the model reads that nobody knows whether it was done."""
        return self._change(key, transitions.given_up)

    def cancel(self, key: str) -> Entry:
        """End one call. One that is being made elsewhere is ended there too, soon; its result does not count."""
        return self._change(key, transitions.cancelled)

    def _decide(self, key: str, *, agreed: bool, digest: str | None, reason: str = "") -> Entry:
        told = clean(reason)[:_LONGEST] if reason.strip() else ""

        def change(entry: Entry) -> Entry:
            if agreed and entry.state is State.AWAITING_APPROVAL and not entry.digest:
                problem = str(entry.terms.get("problem", "it can't be called"))
                raise UsageError(error("call-broken", f"the call {key} can't be agreed to: {problem}"))
            shown = entry.digest if digest is None else digest
            return transitions.decided(entry, Decision(agreed, self.who, self.here.wall(), shown, told))

        return self._change(key, change)

    def _tidy(self, entry: Entry) -> Entry:
        """Return a call as it stands now: its process may have died, or its time may be over, and nobody has looked."""
        return transitions.expired(transitions.reclaimed(entry, self.here), self.here.wall())

    def _change(self, key: str, change: Callable[[Entry], Entry]) -> Entry:
        for _ in range(_TRIES):
            entry = self.entry(key)
            changed = change(self._tidy(entry))
            if changed is entry:
                return entry
            made = self.store.swap(entry, changed)
            if made is not None:
                return made
        message = f"the call {key} is changed by others again and again"
        raise UsageError(error("call-busy", message, help="try again"))


def _question(entry: Entry, named: str | None) -> str:
    if named is not None:
        return named
    return entry.question.key if entry.question is not None else "q0"


def _answer(entry: Entry, asked: str, values: Mapping[str, Any]) -> Answer:
    if entry.state is not State.AWAITING_INPUT or entry.question is None or entry.question.key != asked:
        return Answer(Reaction.ACCEPTED, dict(values))
    schema = entry.question.fields or {"type": "object", "properties": {}, "additionalProperties": False}
    try:
        return Answer(Reaction.ACCEPTED, check(dict(values), schema))
    except ArgumentsError as wrong:
        told = str(wrong).replace("invalid arguments", "the answer does not fit")
        raise UsageError(error("answer", told)) from None
