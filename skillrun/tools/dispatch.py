"""Dispatch: one call of one tool, from the model's arguments to an outcome. It never raises for what a tool does."""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skillrun.errors import SkillrunError, UsageError
from skillrun.problem import error
from skillrun.tools.arguments import ArgumentsError, check
from skillrun.tools.argv import ArgumentFaultError
from skillrun.tools.asking import Asked
from skillrun.tools.outcome import Outcome, ToolCall, error_of, failed, spoken
from skillrun.tools.tool import SPILL, listening, silent

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillrun.tools.events import Progress
    from skillrun.tools.tool import Tool

log: Final = logging.getLogger("skillrun.tools")
_HEAD: Final = 2_000
"""Characters of a saved result that the model gets; RubyLLM's guide says its start, and no number."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who is told about calls. What a listener raises is logged and changes nothing."""

    before: tuple[Callable[[ToolCall], object], ...] = ()
    after: tuple[Callable[[ToolCall, Outcome], object], ...] = ()
    progress: tuple[Callable[[ToolCall, Progress], object], ...] = ()


@dataclass(slots=True)
class Dispatcher:
    """Calls tools. `approve` is asked for tools that want a person's word; without it they are not called.

    Long results are saved in the folder `files`, or by `keep`: it takes the tool's name and the text, and returns
    the file and where a model is told that it is.
    """

    listeners: Listeners = field(default_factory=Listeners)
    approve: Callable[[ToolCall, Tool], bool] | None = None
    files: Path | None = None
    keep: Callable[[str, str], tuple[Path, str]] | None = None
    spill: int | bool = SPILL
    _made: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(
        self,
        tool: Tool,
        call: ToolCall,
        arguments: Any,
        *,
        run: Callable[[ToolCall, dict[str, Any]], Outcome] | None = None,
        agreed: bool = False,
    ) -> Outcome:
        """Do what `made` does, and raise what `raise_on_error` lets through."""
        outcome = self.made(tool, call, arguments, run=run, agreed=agreed)
        if outcome.error is not None and tool.raise_on_error:
            raise outcome.error
        return outcome

    def made(
        self,
        tool: Tool,
        call: ToolCall,
        arguments: Any,
        *,
        run: Callable[[ToolCall, dict[str, Any]], Outcome] | None = None,
        agreed: bool = False,
    ) -> Outcome:
        """Check the arguments, call the tool, and tell who listens. Never raises for what the tool does.

        `run` is what does the work in the tool's place, in another process for one. `agreed` says that a
        person's word was given already. A call that waits for something has no result that listeners are told of.
        """
        self._tell(self.listeners.before, call)
        outcome = self._outcome(tool, call, arguments, run=run or tool.run, agreed=agreed)
        if outcome.waiting is not None:
            return replace(outcome, call=call)
        outcome = replace(self._spilled(tool, call, outcome), call=call)
        self._tell(self.listeners.after, call, outcome)
        return outcome

    def refuse(self, call: ToolCall, outcome: Outcome) -> Outcome:
        """Tell who listens about a call that no tool answers."""
        self._tell(self.listeners.before, call)
        outcome = replace(outcome, call=call)
        log.warning("%s", outcome.text)
        self._tell(self.listeners.after, call, outcome)
        return outcome

    def _outcome(  # noqa: PLR0911 - one return for each way a call ends
        self,
        tool: Tool,
        call: ToolCall,
        arguments: Any,
        *,
        run: Callable[[ToolCall, dict[str, Any]], Outcome],
        agreed: bool,
    ) -> Outcome:
        name = tool.full_name
        try:
            fitted = check(arguments, tool.input_schema)
        except ArgumentsError as wrong:
            log.warning("Tool %r: %s", name, wrong)
            return error_of(name, str(wrong))
        if not agreed and self._unapproved(tool, call, fitted):
            log.warning("Tool %r was not called: nobody agreed to it", name)
            return error_of(name, "a person must agree to this call, and did not")
        token = listening(lambda progress: self._tell(self.listeners.progress, call, progress))
        try:
            outcome = run(call, fitted)
        except Asked as open_one:
            question = open_one.question
            return Outcome(f"[waits for an answer] {question.message}", waiting=question)
        except ArgumentFaultError as wrong:
            log.warning("Tool %r: %s", name, wrong)
            return error_of(name, f"invalid arguments: {wrong}")
        except SkillrunError as wrong:
            # The operator reads why; the model only what it can act upon.
            log.warning("Tool %r error: %s", name, wrong)
            told = str(wrong) if wrong.problem.rule in _FOR_MODEL else "it can't be called here"
            return replace(error_of(name, told), error=wrong)
        except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever a tool raises, the conversation goes on
            log.warning("Tool %r error: %s: %s", name, type(problem).__name__, spoken(problem))
            return failed(name, problem)
        finally:
            silent(token)
        if outcome.is_error:
            log.warning("Tool %r: %s", name, outcome.text.splitlines()[0][:500])
        return outcome

    def _unapproved(self, tool: Tool, call: ToolCall, arguments: dict[str, Any]) -> bool:
        try:
            if not tool.needs_approval(call, arguments):
                return False
            if tool.approval_resolver is not None:
                return tool.approval_resolver(call) is not True
            return self.approve is None or self.approve(call, tool) is not True
        except Exception:  # a question that fails is not a yes
            log.exception("the question whether %r may be called failed", call.name)
            return True

    @staticmethod
    def _tell(listeners: tuple[Callable[..., object], ...], *words: Any) -> None:
        for listener in listeners:
            try:
                listener(*words)
            except Exception:  # noqa: PERF203 - a listener's failure must not lose the result
                log.exception("a listener failed")

    def _spilled(self, tool: Tool, call: ToolCall, outcome: Outcome) -> Outcome:
        """Save a long result to a file, and give its start and the file's path."""
        limit = self.spill if tool.spill is None else tool.spill
        if limit is False or len(outcome.text) <= int(limit):
            return outcome
        try:
            path, place = (self.keep or self._save)(call.name, outcome.text)
            where = f"the whole result is in {place}"
        except OSError as wrong:
            log.warning("the long result of %r was not saved: %s", call.name, wrong)
            path, where = None, "the rest could not be saved"
        head = outcome.text[: min(int(limit), _HEAD)]
        return replace(
            outcome, text=f"{head}\n[… {len(outcome.text)} characters in all; {where}]", saved=path
        )

    def _save(self, name: str, text: str) -> tuple[Path, str]:
        folder = self.files or self._own_folder()
        folder.mkdir(parents=True, exist_ok=True)
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:40] or "result"
        # A name of our own with chance in it: never the model's, never over another file, readable by us alone.
        descriptor, path = tempfile.mkstemp(prefix=f"{plain}-", suffix=".txt", dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        return Path(path), path

    def _own_folder(self) -> Path:
        with self._lock:  # two calls at a time would make two, and one would stay for ever
            if self._made is None:
                self._made = Path(tempfile.mkdtemp(prefix="skillrun-results-"))
            return self._made

    def close(self) -> None:
        """Remove the saved results, unless the caller named the folder."""
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)  # somebody may have tidied up already
            self._made = None


_FOR_MODEL: Final = frozenset({"argument-access"})
"""Rules whose message is about the arguments that the model chose; it names no other file and no setting."""


def positive(number: Any, word: str) -> int:
    """Return a number of things above 0. Raises UsageError for anything else; nothing means "no limit"."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        message = f"`{word}` is {number!r}; it is a whole number above 0"
        raise UsageError(error("tool-limit", message, help=f"leave `{word}` out for the usual number"))
    return number
