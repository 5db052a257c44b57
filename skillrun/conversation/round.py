"""Round: the calls of one reply, brought as far as they go. Every call gets one result, whatever happens."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from skillrun.conversation import results, transitions
from skillrun.conversation.entry import Decision, Entry, State
from skillrun.errors import SkillrunError
from skillrun.tools.arguments import ArgumentsError, check
from skillrun.tools.asking import Answers, Question, answering
from skillrun.tools.outcome import Outcome, ToolError, error_of, spoken
from skillrun.tools.script_tool import ScriptTool
from skillrun.tools.task import Task
from skillrun.tools.terms import Terms, TermsChangedError, agreed, terms_of
from skillrun.tools.tool import MAX_RUN_TIME, Tool
from skillrun.tools.underway import Underway, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from skillrun.conversation.claims import Here
    from skillrun.conversation.entry import Claim
    from skillrun.conversation.files import Files
    from skillrun.conversation.messages import Reply
    from skillrun.conversation.store import Store
    from skillrun.launch.ready import Ready
    from skillrun.sandbox.backend import LaunchPlan
    from skillrun.tools.box import Turn
    from skillrun.tools.dispatch import Dispatcher

    Look: TypeAlias = Callable[[Ready, LaunchPlan], None]

log: Final = logging.getLogger("skillrun.conversation")
LOOK: Final = 1.0
"""Seconds between two looks at whether a call that is made here was cancelled elsewhere."""
SLOW: Final = 10.0
"""Seconds from a claim to the start of a script that need no new claim: a claim is longer than a run by more."""
AGES: Final = 1e9
"""Seconds; more than any machine stays up."""
RESOLVER: Final = "the tool's resolver"


@dataclass(slots=True)
class Making:
    """A call that is made here now: what can end it, and its entry as it was last written from here."""

    run: Underway
    entry: Entry
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class Round:
    """Makes the calls of one conversation. `patience` is how many seconds a person has to agree or to answer.

    `unwritten` are results that a store in trouble did not take: they are written at the next try. `beside` are tasks
    whose work is in this process.
    """

    conversation: str
    turn: Turn
    dispatcher: Dispatcher
    store: Store
    here: Here
    files: Files | None = None
    patience: float | None = None
    under_way: dict[str, Making] = field(default_factory=dict)
    unwritten: dict[str, tuple[Entry, Entry]] = field(default_factory=dict)
    beside: dict[str, Task] = field(default_factory=dict)

    def proposed(self, reply: Reply, seq: int) -> list[Entry]:
        """Return the entries of a new reply: those that need nobody are ready."""
        return [
            self._gated(Entry(self.conversation, seq, position, call, since=self.here.wall()))
            for position, call in enumerate(reply.calls)
        ]

    def advance(self, seq: int, *, resume: bool) -> None:
        """Make every call of a reply that can be made; look after those that wait for a task once, with `resume`.

        Raises what `raise_on_error` lets through, once all of them have their results.
        """
        for old, new in list(self.unwritten.values()):
            self._write(old, new)
        entries = [self._tidied(one) for one in self.store.entries(self.conversation) if one.seq == seq]
        todo = [one for one in entries if one.state is State.READY or (resume and self._due(one))]
        with self._watching(todo):
            outcomes = self._side_by_side(todo)
        for one, outcome in zip(todo, outcomes, strict=True):
            tool = self.turn.find(one.call)
            if outcome is not None and outcome.error is not None and tool is not None and tool.raise_on_error:
                raise outcome.error

    def cancel(self) -> None:
        """End what is made here now."""
        for one in list(self.under_way.values()):
            one.run.cancel()

    def abandon(self) -> None:
        """End work in this process that nobody waits for any more: its call was cancelled elsewhere."""
        if self.beside:
            wanted = {one.key for one in self.store.entries(self.conversation, open_only=True)}
            for key in [one for one in self.beside if one not in wanted]:
                self.beside.pop(key).cancel()

    def _side_by_side(self, todo: Sequence[Entry]) -> list[Outcome | None]:
        workers = min(self.turn.box.workers, len(todo))
        if workers < 2:  # noqa: PLR2004 - one call needs no thread of its own
            return [self._make(one) for one in todo]
        with ThreadPoolExecutor(workers, thread_name_prefix="skillrun-call") as threads:
            waiting = [threads.submit(contextvars.copy_context().run, self._make, one) for one in todo]
            try:
                wait(waiting)  # a store that fails one call is no reason to end the others
                return [one.result() for one in waiting]
            except BaseException:
                for one in waiting:
                    one.cancel()
                self.cancel()
                raise

    def _due(self, entry: Entry) -> bool:
        """Whether a task can be looked at here: not where its work is in another process that still lives."""
        claim = entry.claim
        elsewhere = claim is not None and not self.here.mine(claim) and not self.here.lapsed(claim)
        return entry.state is State.PAUSED and not elsewhere

    def _tidied(self, entry: Entry) -> Entry:
        """Take back a call whose process is gone, end one that waited too long, and ask a tool's own resolver."""
        now = transitions.expired(transitions.reclaimed(entry, self.here), self.here.wall())
        tool = self.turn.find(entry.call)
        if now.state is State.AWAITING_APPROVAL and not now.digest:
            mended = self._gated(now)
            now = mended if mended.digest or mended.state is State.READY else now
        if now.state is State.AWAITING_APPROVAL and tool is not None and tool.approval_resolver is not None:
            now = self._resolved(now, tool)
        return entry if now == entry else self._put(entry, now) or self._again(entry)

    def _resolved(self, entry: Entry, tool: Tool) -> Entry:
        assert tool.approval_resolver is not None  # noqa: S101 - asked before
        try:
            word = tool.approval_resolver(entry.call)
        except Exception:  # a question that fails is no word at all
            log.exception("the resolver of %r failed", entry.call.name)
            return entry
        if word is not True and word is not False:
            return entry
        return transitions.decided(entry, Decision(word, RESOLVER, self.here.wall(), entry.digest))

    def _gated(self, entry: Entry) -> Entry:
        """Return a call as it has to wait, or not."""
        found = self._fitted(entry)
        if found is None:
            return entry
        tool, arguments = found
        try:
            terms = self._terms(tool, entry, arguments)
        except SkillrunError as wrong:
            log.warning("Tool %r can't be called: %s", entry.call.name, wrong)
            terms = Terms("", {"tool": tool.full_name, "problem": str(wrong)})
        return self._timed(transitions.proposed(entry, terms))

    def _fitted(self, entry: Entry) -> tuple[Tool, dict[str, Any]] | None:
        """Return the tool and the arguments as its schema wants them; None for a call that can only fail."""
        tool = self.turn.find(entry.call)
        if tool is None:
            return None
        try:
            return tool, check(entry.call.arguments, tool.input_schema)
        except ArgumentsError:
            return None

    def _terms(self, tool: Tool, entry: Entry, arguments: dict[str, Any]) -> Terms | None:
        """Return what a person has to agree to; None when nobody has to. Raises SkillrunError as a run does."""
        try:
            needed = tool.needs_approval(entry.call, arguments)
        except Exception:  # what can't be told is not harmless
            log.exception("whether %r needs approval can't be told", entry.call.name)
            needed = True
        return terms_of(tool, arguments) if needed else None

    def _make(self, entry: Entry) -> Outcome | None:
        """Make one call, or leave it waiting; None when nothing came of it here."""
        found = self._fitted(entry)
        tool = found[0] if found is not None else self.turn.find(entry.call)
        try:
            # What waits for a task was agreed to when it began.
            begins = found is not None and entry.state is State.READY
            terms = self._terms(found[0], entry, found[1]) if found is not None and begins else None
        except SkillrunError as wrong:
            log.warning("Tool %r can't be called: %s", entry.call.name, wrong)
            return self._refused(entry, error_of(entry.call.name, "it can't be called here"))
        word = entry.decision
        if terms is not None and not _covers(word, terms):
            self._put(entry, self._timed(transitions.asked_again(entry, terms)))
            return None
        seconds = tool.max_run_time if tool is not None else MAX_RUN_TIME
        # What was cut off in the middle of `resume` may have done its work, as in the middle of `execute`.
        repeatable = tool is not None and (tool.repeatable if entry.task is None else tool.looks)
        running = self._put(
            entry, transitions.claimed(entry, self.here.claim(seconds), repeatable=repeatable)
        )
        if running is None:
            return None  # somebody else makes it
        compare = None if tool is None else _comparing(tool, running, word)
        making = Making(
            Underway(lambda ready, plan: self._starts(making, seconds, compare, ready, plan)), running
        )
        try:
            outcome = self._called(making, tool)
        except BaseException:
            self._write(making.entry, transitions.cancelled(making.entry))
            raise
        self._finish(making.entry, tool, outcome)
        return outcome

    def _called(self, making: Making, tool: Tool | None) -> Outcome:
        """Have the work done."""
        entry, call = making.entry, making.entry.call
        if tool is None:
            return self.dispatcher.refuse(call, self.turn.unknown(call.name))
        work: Callable[..., Outcome] = self.turn.box.pool.runs(tool)
        state = entry.task
        if state is not None:
            work = lambda call, given: tool.carry_on(call, given, tool.task(state, tool_call=call))  # noqa: E731 - one of two
        answers = Answers(entry.settled, letter="q" if state is None else "r")
        self.under_way[entry.key] = making
        try:
            with watched(making.run), answering(answers):
                return self.dispatcher.made(tool, call, call.arguments, run=work, agreed=True)
        finally:
            self.under_way.pop(entry.key, None)

    def _starts(
        self, making: Making, seconds: float, compare: Look | None, ready: Ready, plan: LaunchPlan
    ) -> None:
        """Look at a script's run before it starts. Raises when it must not."""
        if compare is not None:
            compare(ready, plan)
        claim = making.entry.claim
        if claim is None or self.here.clock() <= claim.until - seconds + SLOW:
            return
        # It had to wait for its turn, or the store did: what is left of the claim is too little for the run.
        with making.lock:
            made = self._put(making.entry, replace(making.entry, claim=self.here.claim(seconds)))
            if made is None:
                raise ToolError("the call was ended, or taken over, before it began")
            making.entry = made

    def _finish(self, running: Entry, tool: Tool | None, outcome: Outcome) -> None:
        """Write down what came of a call."""
        if isinstance(outcome.error, TermsChangedError) and tool is not None:
            # Nothing was started, so the word was not used; it was about something else.
            try:
                found = self._fitted(running)
                terms = terms_of(tool, found[1]) if found is not None else None
            except SkillrunError:
                terms = None
            if terms is not None:
                self._put(running, self._timed(transitions.asked_again(running, terms)))
                return
        self._write(running, self._after(running, tool, outcome))

    def _write(self, running: Entry, ended: Entry) -> None:
        """Write down a result, or keep it for the next try. Raises StoreError."""
        self.unwritten[running.key] = (running, ended)
        made = self._put(running, ended)
        del self.unwritten[running.key]
        if made is None:
            log.warning("the result of %r came too late and was dropped", running.call.name)

    def _after(self, running: Entry, tool: Tool | None, outcome: Outcome) -> Entry:
        waits = outcome.waiting
        if isinstance(waits, Question):
            task = None if tool is None or tool.asks_anew else running.task
            return self._timed(transitions.waiting(running, waits, task=task))
        if isinstance(waits, Task):
            try:
                if tool is not None and _carries_on(tool):
                    return transitions.paused(running, waits.state(), self._held(running, tool, waits))
                told = "it returned a task, and has no `resume` to carry it on"
            except (TypeError, ValueError) as wrong:
                told = f"its task can't be kept: {wrong}"
            outcome = error_of(running.call.name, told)
        return transitions.answered(running, self._kept(running, outcome))

    def _held(self, running: Entry, tool: Tool, task: Task) -> Claim | None:
        """Return a claim for work that is in this process and dies with it, and remember it."""
        if not task.here:
            return None
        self.beside[running.key] = task
        claim = self.here.claim(tool.max_run_time)
        return replace(
            claim, until=claim.until + AGES
        )  # on this host the process itself says whether it lives

    def _kept(self, entry: Entry, outcome: Outcome) -> dict[str, Any]:
        """Return a result as it is kept. What can't be kept is an error: the call has to have a result."""
        self.beside.pop(entry.key, None)
        try:
            return results.to_data(outcome, self.files)
        except Exception as wrong:  # noqa: BLE001 - a tool makes outcomes of anything
            told = f"it was done, and its result can't be kept: {spoken(wrong)}"
            return results.to_data(error_of(entry.call.name, told), None)

    def _refused(self, entry: Entry, outcome: Outcome) -> Outcome | None:
        self.dispatcher.refuse(entry.call, outcome)
        self._put(entry, transitions.answered(entry, results.to_data(outcome, self.files)))
        return None

    def _timed(self, entry: Entry) -> Entry:
        if self.patience is None or entry.state not in {State.AWAITING_APPROVAL, State.AWAITING_INPUT}:
            return entry
        return replace(entry, expires=self.here.wall() + self.patience)

    def _put(self, old: Entry, new: Entry) -> Entry | None:
        return self.store.swap(old, transitions.dated(old, new, self.here.wall()))

    def _again(self, entry: Entry) -> Entry:
        found = [one for one in self.store.entries(self.conversation) if one.key == entry.key]
        return found[0] if found else entry

    @contextlib.contextmanager
    def _watching(self, todo: Sequence[Entry]) -> Iterator[None]:
        """End calls made here that somebody elsewhere has cancelled (facts/agents B5 22)."""
        if not self.store.shared or not todo:
            yield
            return
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(todo, over), name="skillrun-watch", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()

    def _watch(self, todo: Sequence[Entry], over: threading.Event) -> None:
        while not over.wait(LOOK):
            for one in todo:
                making = self.under_way.get(one.key)
                if making is None:
                    continue
                with contextlib.suppress(SkillrunError), making.lock:
                    # Whoever changed it has taken the call away from here.
                    if self.store.version(one) != making.entry.version:
                        making.run.cancel()


def _covers(word: Decision | None, terms: Terms) -> bool:
    return word is not None and word.agreed and word.digest == terms.digest


def _carries_on(tool: Tool) -> bool:
    kind = type(tool)
    return kind.resume is not Tool.resume or kind.carry_on is not Tool.carry_on


def _comparing(tool: Tool, entry: Entry, word: Decision | None) -> Look | None:
    """Return what compares a script's run with what was agreed to, when it is planned: nothing changes after that."""
    if word is None or not isinstance(tool, ScriptTool):
        return None
    arguments = check(entry.call.arguments, tool.input_schema)

    def look(ready: Ready, _plan: LaunchPlan) -> None:
        agreed(tool, arguments, word.digest, ready)

    return look
