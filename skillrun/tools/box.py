"""Toolbox: the tools that a model is offered, one turn at a time, and the calls it makes."""

from __future__ import annotations

import contextvars
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from skillrun.errors import UsageError
from skillrun.problem import Problem, error, warning
from skillrun.tools.dispatch import Dispatcher, Listeners, positive
from skillrun.tools.outcome import Outcome, ToolCall, error_of
from skillrun.tools.pool import ProcessPool
from skillrun.tools.script_tool import script_tools
from skillrun.tools.search import ToolSearch
from skillrun.tools.selection import INHERIT, select, similar
from skillrun.tools.tool import SPILL, Tool, check_tool, tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from skillrun.runner import Runner
    from skillrun.tools.selection import Choice
    from skillrun.tools.task import Task

log: Final = logging.getLogger("skillrun.tools")
MAX_TOOLS: Final = 128
"""Tools of one turn: more make OpenAI's Chat API refuse the whole request (facts/mcp 3)."""
WORKERS: Final = 8
"""Calls at the same time."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The tools of one turn. It stands alone: a later turn replaces it and does not add to it.

    `tools` are all that may be called, `listed` those that the model sees now: all but the deferred ones that
    no search has found. `problems` says what was dropped.
    """

    box: Toolbox
    tools: tuple[Tool, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def listed(self) -> tuple[Tool, ...]:
        """The tools that are not deferred, the search if it is needed, then those that were found, in that order.

        What was found comes last and stays: the beginning of the list never changes its bytes, so a prompt
        cache of it stays good.
        """
        return self.box.loading.listed(self.tools)

    def narrow(self, choice: Choice = INHERIT) -> Turn:
        """Return a turn with fewer tools: a nested level only ever narrows."""
        return Turn(self.box, select(self.tools, choice), self.problems)

    def definitions(self, provider: str, **options: Any) -> list[dict[str, Any]]:
        """Return the definitions of the tools as a provider wants them; see `skillrun.tools.formats`."""
        from skillrun.tools.formats import format_of  # noqa: PLC0415 - the formats import this module's neighbours

        return format_of(provider).definitions(self, **options)

    def calls(self, provider: str, reply: Any) -> list[ToolCall]:
        """Return the calls in a model's reply, an object of the provider's SDK or the same as plain data."""
        from skillrun.tools.formats import format_of  # noqa: PLC0415 - as above

        return format_of(provider).calls(reply)

    def results(self, provider: str, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return the messages that answer all the calls of one reply."""
        from skillrun.tools.formats import format_of  # noqa: PLC0415 - as above

        return format_of(provider).results(outcomes)

    def call(
        self, name: str, arguments: Any = None, *, call_id: str = "", namespace: str | None = None
    ) -> Outcome:
        """Call a tool by the name that the model wrote. Unknown names and all that goes wrong come back as an outcome."""
        return self.answer(ToolCall(name, arguments, call_id, namespace))

    def answer(self, call: ToolCall) -> Outcome:
        """Answer one call of the model."""
        call = replace(call, name=str(call.name))  # a reply is plain data, and may say anything
        found = self.find(call)
        if found is None:
            return self.box.dispatcher.refuse(call, self.unknown(call.name))
        return self.box.pool.call(self.box.dispatcher, found, call)

    def carry_on(self, call: ToolCall, task: Task) -> Outcome:
        """Look at the task that a call waits for; the outcome waits on, or is the call's."""
        found = self.find(call)
        if found is None:
            return self.box.dispatcher.refuse(call, self.unknown(call.name))

        def look(made: ToolCall, arguments: dict[str, Any]) -> Outcome:
            return found.carry_on(made, arguments, task)

        return self.box.dispatcher.call(found, call, call.arguments, run=look, agreed=True)

    def answer_all(self, calls: Sequence[ToolCall]) -> list[Outcome]:
        """Answer calls side by side, at most `workers` at a time; the outcomes come in the order of the calls.

        All of them run to their end. Then the first error that `raise_on_error` lets through is raised.
        """
        if len(calls) < 2:  # noqa: PLR2004 - one call needs no threads
            return [self.answer(call) for call in calls]
        with ThreadPoolExecutor(max_workers=min(self.box.workers, len(calls))) as threads:
            waiting = [threads.submit(contextvars.copy_context().run, self.answer, call) for call in calls]
        return [one.result() for one in waiting]

    def find(self, call: ToolCall) -> Tool | None:
        """Return the tool that a call means; None for one that is not in this turn."""
        for one in (*self.tools, *self.box.loading.search(self.tools)):
            # With a namespace the name is meant within it: a tool outside of it may have the same one.
            if call.namespace is None and call.name == one.full_name:
                return one
            if call.namespace == one.namespace and call.name in {one.name, one.full_name}:
                return one
        return None

    def unknown(self, name: str) -> Outcome:
        """Return the outcome of a call of a tool that is not there, with those that are called alike."""
        near = similar(name, self.tools)
        told = f"there is no tool `{name[:100]}`"
        advice = "; similar ones are " + ", ".join(f"`{one}`" for one in near) if near else ""
        return error_of(name[:100], told + advice)


@dataclass(slots=True)
class Loading:
    """Deferred tools that a search has found in this conversation; they stay found, in the order of the finds."""

    found: list[str] = field(default_factory=list)

    def load(self, tools: Sequence[Tool]) -> None:
        """Remember tools as found."""
        self.found += [one.full_name for one in tools if one.full_name not in self.found]

    def search(self, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        """Return the search tool where a tool is deferred."""
        if not any(one.defer for one in tools):
            return ()
        return (
            ToolSearch(
                lambda: [one for one in tools if one.defer and one.full_name not in self.found], self.load
            ),
        )

    def listed(self, tools: Sequence[Tool]) -> tuple[Tool, ...]:
        """Return what the model sees now."""
        by_name = {one.full_name: one for one in tools if one.defer}
        found = [by_name[name] for name in self.found if name in by_name]
        return (*(one for one in tools if not one.defer), *self.search(tools), *found)


class Toolbox:
    """Tools from skills, classes and functions. Each turn offers all, none or some of them.

    `tools` are instances, classes (made without arguments) or plain functions. `runner` adds the scripts of its
    skills. `max_tools` bounds a turn. `on_call`, `on_result` and `on_progress` are told about every call and its
    result. `approve` is asked before a tool that wants a person's word. `files` is where long results are saved;
    without it in a folder that `close` removes. `defer` decides for every tool, None leaves it to each.
    """

    def __init__(
        self,
        tools: Iterable[Any] = (),
        *,
        runner: Runner | None = None,
        max_tools: int | None = None,
        workers: int = WORKERS,
        on_call: Iterable[Callable[[ToolCall], object]] = (),
        on_result: Iterable[Callable[[ToolCall, Outcome], object]] = (),
        on_progress: Iterable[Callable[..., object]] = (),
        approve: Callable[[ToolCall, Tool], bool] | None = None,
        files: Path | None = None,
        spill: int | bool = SPILL,
        defer: bool | None = None,
        name: str = "toolbox",
    ) -> None:
        self.name = name
        scripts, problems = script_tools(runner) if runner is not None else ((), ())
        own = None if runner is None else runner.layers.tools.max_tools
        self.max_tools = positive(max_tools if max_tools is not None else own or MAX_TOOLS, "max_tools")
        self.workers = positive(workers, "workers")
        self.tools: tuple[Tool, ...] = (*(_made(one) for one in tools), *scripts)
        self.problems: tuple[Problem, ...] = problems
        for one in self.tools:
            one.defer = one.defer if defer is None else defer
        _check_together(self.tools)
        self.loading = Loading()
        self.pool = ProcessPool(self.workers)
        listeners = Listeners(tuple(on_call), tuple(on_result), tuple(on_progress))
        self.dispatcher = Dispatcher(listeners, approve, files, spill=spill)

    def __enter__(self) -> Toolbox:  # noqa: PYI034 - Self came with Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process pool and remove the saved results. A runner is its maker's to close."""
        self.pool.close()
        self.dispatcher.close()

    def turn(self, choice: Choice = INHERIT) -> Turn:
        """Return the tools of one turn: all, none, or those that are named. It replaces every turn before it.

        More than `max_tools` are cut, the first ones stay, and a warning names those that were dropped.
        """
        chosen = select(self.tools, choice)
        kept, dropped = chosen[: self.max_tools], chosen[self.max_tools :]
        if not dropped:
            return Turn(self, kept, self.problems)
        names = ", ".join(one.full_name for one in dropped)
        message = (
            f"[{self.name}] tool list ({len(chosen)}) exceeds max_tools ({self.max_tools}); sending {len(kept)}, "
            f"dropping {len(dropped)}: {names}"
        )
        log.warning("%s", message)
        told = warning("too-many-tools", message, help="name the tools of this turn, or defer some")
        return Turn(self, kept, (*self.problems, told))


def _made(given: Any) -> Tool:
    """Make a tool of what was given: an instance, a class of tools, or a function."""
    if isinstance(given, Tool):
        made = given
    elif isinstance(given, type) and issubclass(given, Tool):
        made = given()
    elif callable(given) and not isinstance(given, type):
        made = tool(given)
    else:
        message = f"{given!r} is no tool"
        advice = "give an instance or a class of Tool, or a function; names belong into `turn([...])`"
        raise UsageError(error("tool-definition", message, help=advice))
    check_tool(made)
    made.input_schema  # noqa: B018 - a schema that no API takes is told here, and not in the middle of a conversation
    return made


def _check_together(tools: Sequence[Tool]) -> None:
    """Raise UsageError for two tools that a model could not tell apart."""
    seen: dict[str, Tool] = {}
    for one in tools:
        other = seen.setdefault(one.full_name, one)
        if other is not one:
            message = f"two tools are called `{one.full_name}`: {_origin(other)} and {_origin(one)}"
            raise UsageError(
                error("tool-clash", message, help="give one of them another `tool_name` or a namespace")
            )
        if one.full_name == ToolSearch.tool_name:
            raise UsageError(
                error("tool-clash", "`tool_search` is the name of the search for deferred tools")
            )


def _origin(one: Tool) -> str:
    identity = getattr(one, "identity", None)
    return (
        f"`{identity.folder}/scripts/{identity.script}`"
        if identity is not None
        else f"`{type(one).__module__}.{type(one).__qualname__}`"
    )
