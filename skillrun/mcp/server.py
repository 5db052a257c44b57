"""Server: the SDK's low-level server over an offer of tools. One set of handlers serves both eras and both transports."""

from __future__ import annotations

import contextlib
import functools
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server import NotificationOptions, Server
from mcp.server.caching import CacheHint
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

import skillrun
from skillrun.errors import SkillrunError, UsageError
from skillrun.mcp.approval import Approvals, RefusedError, agreed, terms_of
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
from skillrun.tools.outcome import ToolCall, error_of
from skillrun.tools.script_tool import ScriptTool
from skillrun.tools.selection import similar
from skillrun.tools.underway import Underway

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions
    from mcp.server.session import ServerSession

    from skillrun.launch.ready import Ready
    from skillrun.mcp.offer import Offer, Offered
    from skillrun.mcp.roots import Roots
    from skillrun.runner import Runner
    from skillrun.sandbox.backend import LaunchPlan
    from skillrun.tools.outcome import Outcome
    from skillrun.tools.tool import Tool

    Context = ServerRequestContext[Any, Any]

log: Final = logging.getLogger("skillrun.mcp")
NAME: Final = "skillrun"
LOOK: Final = 2.0
"""Seconds between two looks whether skills have changed on disk."""
_FRESH: Final = CacheHint(ttl_ms=int(LOOK * 1000), scope="private")
_MOST_TOLD: Final = 1_000  # clients of the era of the handshake that are told of changes
_INSTRUCTIONS: Final = (
    "Each tool runs one script of a skill in a sandbox. A result that is an error says how the script ended; "
    "its files and long outputs are resource links."
)


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
            asked = await self._ask(ctx, params, tool, offer.runner)
            if isinstance(asked, types.InputRequiredResult):
                return asked
            outcome = await self._made(ctx, offered, call, asked)
        except (RefusedError, BusyError) as wrong:
            told = str(wrong) or "too many calls are under way; try again later"
            log.warning("%s", f"`{tool.full_name}` was not called: {told}")
            outcome = error_of(tool.full_name, told)
        return result_of(outcome, self.shelf)

    async def _made(
        self, ctx: Context, offered: Offered, call: ToolCall, compare: Callable[[Ready], None] | None
    ) -> Outcome:
        def look(ready: Ready, plan: LaunchPlan) -> None:
            confined(plan)
            if compare is not None:
                compare(ready)

        self.approved.add(call.id)
        try:
            work = functools.partial(offered.turn.answer, call)
            return await self.calls.make(call.id, Underway(look), work, ctx.session)
        finally:
            self.approved.discard(call.id)

    async def _ask(
        self, ctx: Context, params: types.CallToolRequestParams, tool: Tool, runner: Runner
    ) -> Callable[[Ready], None] | types.InputRequiredResult | None:
        """Ask a person where the skill or the operator wants it; return what compares the run with the answer."""
        if not tool.requires_approval:
            return None
        try:
            arguments = check(params.arguments, tool.input_schema)
            terms = await anyio.to_thread.run_sync(terms_of, tool, arguments, runner)
        except ArgumentsError:
            return None  # the call tells it: nobody is asked about a call that can't be made
        except SkillrunError as wrong:
            log.warning("%s", f"`{tool.full_name}` can't be called: {wrong}")
            raise RefusedError("it can't be called here") from None
        question = await self.approvals.ask(ctx, params, terms)
        if question is not None or not isinstance(tool, ScriptTool):
            return question
        return functools.partial(agreed, tool, arguments, terms)

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
