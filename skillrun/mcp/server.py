"""Server: the SDK's low-level server over an offer of tools. One set of handlers serves both eras and both transports."""

from __future__ import annotations

import contextlib
import functools
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server import NotificationOptions, Server
from mcp.server.caching import CacheHint
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

import skillrun
from skillrun.errors import SkillrunError, UsageError
from skillrun.mcp.approval import Approvals, RefusedError, terms_of
from skillrun.mcp.asking import Asking, begun, can_ask, put
from skillrun.mcp.calls import BusyError, Calls
from skillrun.mcp.definitions import definition
from skillrun.mcp.inflight import told_apart
from skillrun.mcp.library import EXTENSION
from skillrun.mcp.paging import page
from skillrun.mcp.resources import GetSkillParams, Resources
from skillrun.mcp.results import result_of
from skillrun.mcp.roots import session_of
from skillrun.mcp.shelf import Shelf
from skillrun.problem import error
from skillrun.tools.arguments import ArgumentsError, check
from skillrun.tools.asking import Answers, Question, answering
from skillrun.tools.outcome import ToolCall, error_of
from skillrun.tools.script_tool import ScriptTool
from skillrun.tools.selection import similar
from skillrun.tools.task import Task
from skillrun.tools.terms import agreed
from skillrun.tools.underway import Underway

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions
    from mcp.server.session import ServerSession

    from skillrun.launch.ready import Ready
    from skillrun.mcp.offer import Offer, Offered
    from skillrun.mcp.roots import Roots
    from skillrun.sandbox.backend import LaunchPlan
    from skillrun.tools.outcome import Outcome
    from skillrun.tools.tool import Tool

    Context = ServerRequestContext[Any, Any]

log: Final = logging.getLogger("skillrun.mcp")
NAME: Final = "skillrun"
LOOK: Final = 2.0
"""Seconds between two looks whether skills have changed on disk."""
_FRESH: Final = CacheHint(ttl_ms=int(LOOK * 1000), scope="private")
_POLL, _LONGEST_POLL = 1.0, 30.0  # seconds between two looks at a task: whoever called waits for its end
_MOST_TOLD: Final = 1_000  # clients of the era of the handshake that are told of changes
_INSTRUCTIONS: Final = (
    "Each tool runs one script of a skill in a sandbox. A result that is an error says how the script ended; "
    "its files and long outputs are resource links."
)


@dataclass(frozen=True, slots=True)
class _Word:
    """What a call is made with: what was answered, and what compares a script's run with what was agreed to."""

    asking: Asking
    compare: Callable[[Ready], None] | None = None


@dataclass(slots=True)
class Service:
    """Handlers over one offer, and what they keep between requests."""

    roots: Roots
    calls: Calls
    shelf: Shelf = field(default_factory=Shelf)
    approvals: Approvals = field(default_factory=Approvals)
    approved: set[str] = field(default_factory=set)
    running: set[tuple[str, types.RequestId]] = field(default_factory=set)
    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    # By the client, or one that says again and again that it is there would be told as often, and push others out.
    sessions: dict[str, ServerSession] = field(default_factory=dict)

    def server(self) -> Server[Any]:
        """Make the SDK's server."""
        resources = Resources(self.roots.whole, self.shelf)
        made: Server[Any] = Server(
            NAME,
            version=skillrun.__version__,
            title="skillrun",
            instructions=_INSTRUCTIONS,
            cache_hints={"tools/list": _FRESH, "resources/list": _FRESH},
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=resources.list,
            on_read_resource=resources.read,
            on_subscriptions_listen=ListenHandler(self.bus),
        )
        made.middleware.insert(0, self.heard)
        made.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
        made.extensions[EXTENSION] = {}
        made.add_request_handler("skills/list", types.PaginatedRequestParams, resources.list_skills)
        made.add_request_handler("skills/get", GetSkillParams, resources.get_skill)
        made.add_notification_handler("notifications/initialized", types.NotificationParams, self.initialized)
        return made

    def close(self) -> None:
        """Let the threads and the offers go; every run has been ended."""
        self.calls.close()
        self.roots.close()

    async def list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Answer `tools/list`."""
        try:
            offered = await _offered(await self.roots.offer(ctx))
        except RefusedError as wrong:
            raise MCPError(types.INVALID_REQUEST, str(wrong)) from None
        tools, cursor = page(offered.tools, _name, params.cursor if params is not None else None)
        return types.ListToolsResult(tools=[definition(tool) for tool in tools], next_cursor=cursor)

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Answer `tools/call`. An unknown tool is a protocol error; everything else is a result."""
        try:
            offer = await self.roots.offer(ctx)
        except RefusedError as wrong:
            log.warning("%s", f"`{params.name[:100]}` was not called: {wrong}")
            return result_of(error_of(params.name[:100], str(wrong)), self.shelf)
        offered = await _offered(offer)
        tool = offered.by_name.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, _unknown(params.name, offered))
        call = ToolCall(tool.full_name, params.arguments, self.calls.new_id())
        try:
            asking = begun(ctx, params, self.approvals)
            asked = await self._ask(ctx, params, tool, asking)
            if isinstance(asked, types.InputRequiredResult):
                return asked
            outcome = await self._settled(ctx, offered, call, asked)
            if isinstance(outcome, types.InputRequiredResult):
                return outcome
        except (RefusedError, BusyError) as wrong:
            told = str(wrong) or "too many calls are under way; try again later"
            log.warning("%s", f"`{tool.full_name}` was not called: {told}")
            outcome = error_of(tool.full_name, told)
        return result_of(outcome, self.shelf)

    async def _settled(
        self, ctx: Context, offered: Offered, call: ToolCall, word: _Word
    ) -> Outcome | types.InputRequiredResult:
        """Make a call until none of its questions is open and its task is over, or the client has to ask by itself."""
        task: Task | None = None
        try:
            while True:
                outcome = await self._made(ctx, offered, call, word, task)
                waits = outcome.waiting
                if isinstance(waits, Task):
                    task = waits
                    await anyio.sleep(min(task.poll_interval or _POLL, _LONGEST_POLL))
                elif isinstance(waits, Question):
                    task = None if offered.by_name[call.name].asks_anew else task
                    if task is not None and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                        # It would make the call anew with its answer, and the work would be done twice.
                        told = "it asks a person in the middle of long work, and can't be answered then"
                        raise RefusedError(told)  # noqa: TRY301 - the task is cancelled below
                    found = await put(ctx, word.asking, waits, call.name, self.approvals)
                    if isinstance(found, types.InputRequiredResult):
                        return found
                    word = replace(word, asking=found)
                else:
                    return outcome
        except BaseException:
            if task is not None:  # nobody waits for it any more
                with anyio.CancelScope(shield=True), contextlib.suppress(Exception):
                    await anyio.to_thread.run_sync(task.cancel)
            raise

    async def _made(
        self, ctx: Context, offered: Offered, call: ToolCall, word: _Word, task: Task | None
    ) -> Outcome:
        def look(ready: Ready, plan: LaunchPlan) -> None:
            confined(plan)
            if word.compare is not None:
                word.compare(ready)

        self.approved.add(call.id)
        # Where nobody can be asked, a tool that asks is told so and fails.
        answers = answering(Answers(word.asking.settled)) if can_ask(ctx) else contextlib.nullcontext()
        try:
            with answers:  # the thread that makes the call sees what its maker does
                work = functools.partial(offered.turn.answer, call)
                if task is not None:
                    work = functools.partial(offered.turn.carry_on, call, task)
                return await self.calls.make(call.id, Underway(look), work, ctx.session)
        finally:
            self.approved.discard(call.id)

    async def _ask(
        self, ctx: Context, params: types.CallToolRequestParams, tool: Tool, asking: Asking
    ) -> _Word | types.InputRequiredResult:
        """Ask a person where the skill or the operator wants it; return what the call is made with."""
        try:
            arguments = check(params.arguments, tool.input_schema)
            if not tool.needs_approval(ToolCall(tool.full_name, params.arguments), arguments):
                return _Word(asking)
            terms = await anyio.to_thread.run_sync(terms_of, tool, arguments)
        except ArgumentsError:
            return _Word(asking)  # the call tells it: nobody is asked about a call that can't be made
        except SkillrunError as wrong:
            log.warning("%s", f"`{tool.full_name}` can't be called: {wrong}")
            raise RefusedError("it can't be called here") from None
        if asking.agreed != terms.digest:
            question = await self.approvals.ask(ctx, params, terms)
            if question is not None:
                return question
        asking = replace(asking, agreed=terms.digest)
        if not isinstance(tool, ScriptTool):
            return _Word(asking)
        return _Word(asking, functools.partial(agreed, tool, arguments, terms.digest))

    async def heard(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Take the news of other roots before anything else: a handler would be too late for a call right behind it."""
        if ctx.method == "notifications/roots/list_changed":
            self.roots.changed(ctx)
        session = session_of(ctx)
        if not session or ctx.request_id is None:
            return await call_next(ctx)
        key = session, told_apart(ctx.request_id)
        self.running.add(key)
        try:
            return await call_next(ctx)
        finally:
            self.running.discard(key)

    def runs(self, session: str, request: types.RequestId) -> bool:
        """Whether a request of a session on a port is being worked at, its stream closed or not."""
        return (session, request) in self.running

    async def initialized(self, ctx: Context, _params: Any) -> None:
        """Remember who is told of changes: a client of the era of the handshake. Nobody says that it goes."""
        client = session_of(ctx)
        self.sessions.pop(client, None)
        if len(self.sessions) >= _MOST_TOLD:
            del self.sessions[next(iter(self.sessions))]
        self.sessions[client] = ctx.session

    async def watch(self) -> None:
        """Look for changed skills again and again, and tell every client."""
        sign = (await _offered(self.roots.whole)).sign
        while True:
            await anyio.sleep(LOOK)
            now = (await _offered(self.roots.whole)).sign
            if now != sign:
                sign = now
                await self._tell_changed()

    async def _tell_changed(self) -> None:
        await self.bus.publish(ToolsListChanged())
        for session in list(self.sessions.values()):
            with contextlib.suppress(Exception):  # whoever has gone is told nothing
                await session.send_tool_list_changed()


async def _offered(offer: Offer) -> Offered:
    return await anyio.to_thread.run_sync(offer.now)


def _name(tool: Tool) -> str:
    return tool.full_name


def confined(plan: LaunchPlan) -> None:
    """Raise UsageError for a run without confinement, whatever a ceiling says: whoever calls is no operator."""
    if plan.backend == "passthrough":
        message = "this script would run without confinement, and over MCP none does"
        advice = "a ceiling with `enabled: false`, `require: none` or a trusted skill is for the command line"
        raise UsageError(error("mcp-unconfined", message, help=advice))


def options_of(server: Server[Any]) -> InitializationOptions:
    """Return what the handshake says."""
    return server.create_initialization_options(NotificationOptions(tools_changed=True))


def _unknown(name: str, offered: Offered) -> str:
    near = similar(name, offered.tools)
    advice = "; similar ones are " + ", ".join(near) if near else ""
    return f"Unknown tool: {name[:100]}{advice}"
