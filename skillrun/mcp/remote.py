"""Remote: tools of other MCP servers, each server confined by `skillrun mcp-run`, as tools of ours.

What a server says about its tools is a stranger's text: it is shown, it is part of the pin, and it lowers nothing.
"""

from __future__ import annotations

import base64
import contextlib
import contextvars
import hashlib
import json
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from anyio.from_thread import start_blocking_portal
from mcp.client.client import Client

from skillrun.errors import UsageError
from skillrun.mcp.far import far_server
from skillrun.mcp.far_tasks import FarTask, FarTasks, Handed, carried_on, far_task, load
from skillrun.mcp.relay import Relay
from skillrun.problem import error, warning
from skillrun.report.document import clean as cleaned
from skillrun.tools.names import Identity, script_name, with_hash
from skillrun.tools.outcome import Attachment, Outcome, ToolError, clean
from skillrun.tools.schema import checked_schema
from skillrun.tools.task import Status, Task, came_of
from skillrun.tools.tool import Tool, report
from skillrun.tools.underway import underway

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from anyio.from_thread import BlockingPortal

    from skillrun.mcp.servers import Listed
    from skillrun.problem import Problem
    from skillrun.tools.outcome import ToolCall

MOST_TOOLS: Final = 128
"""Tools of one server; what it lists beyond is left out."""
START: Final = 60.0
"""Seconds that a server gets to answer at its start, the fetching of its package included, and once more to list its tools."""
PATIENCE: Final = 600.0
"""Seconds that it gets to answer a call: a place among ours is taken all the time."""
_LONGEST: Final = 1_024
_DEEPEST: Final = 30
_MOST_PAGES: Final = 64
_LONGEST_SCHEMA: Final = 64 << 10


class RemoteTool(Tool):
    """A tool of another server. Without a pin a person has to agree to each call, whatever the server says of it."""

    looks = True

    def __init__(self, connection: Connection, told: types.Tool, *, name: str, digest: str) -> None:
        super().__init__()
        self.server = connection.listed
        self.told = told
        self.digest = digest
        self._connection = connection
        self._name = name
        given = {"type": "object", "properties": {}, **cleaned(told.input_schema)}
        if len(json.dumps(given)) > _LONGEST_SCHEMA:
            raise ValueError("its schema is too large")
        self._schema = checked_schema(_portable(given), None, name)[0]
        self.requires_approval = connection.listed.pins.get(told.name) != digest

    @property
    def name(self) -> str:
        """The name that the model calls."""
        return self._name

    @property
    def about(self) -> str:
        """What the server says the tool does."""
        return clean(cleaned(self.told.description or ""))[:_LONGEST]

    @property
    def input_schema(self) -> dict[str, Any]:
        """What the server says the tool takes."""
        return self._schema

    @property
    def identity(self) -> tuple[str, ...]:
        """What an approval is bound to: the command, the tool and its digest; never the name."""
        return ("mcp", *self.server.command, self.server.ceiling, self.told.name, self.digest)

    def run(self, call: ToolCall, arguments: dict[str, Any]) -> Outcome:  # noqa: ARG002 - the one signature of all tools
        """Call the tool in its server, which may answer with a task."""
        result = self._connection.call(self.told.name, arguments)
        if not isinstance(result, Handed):
            return _outcome(result)
        made = result.created
        task = far_task(
            made.task_id,
            Status.WORKING,
            made.status_message,
            made.poll_interval_ms,
            send=self._connection.request,
        )
        return came_of(task)

    def task(self, state: Mapping[str, Any], *, tool_call: ToolCall | None = None) -> FarTask:  # noqa: ARG002 - the one signature of all tools
        """Return a task of the server."""
        return load(state, self._connection.request)

    def carry_on(self, call: ToolCall, arguments: dict[str, Any], task: Task) -> Outcome:  # noqa: ARG002 - as above
        """Ask the server how far its task is."""
        return carried_on(load(task.state(), self._connection.request), _outcome)


def digest_of(told: types.Tool) -> str:
    """Return the digest of a tool: its name, description and schema, as the server says them."""
    said = [told.name, told.description, told.input_schema]
    text = json.dumps(said, sort_keys=True, ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Connection:
    """One connected server."""

    listed: Listed
    client: Client
    portal: BlockingPortal
    relay: Relay

    def call(self, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Call a tool and wait; whoever ends the call ends it in the server too. Raises ToolError when it fails.

        A question of the server leaves the call waiting, as one of our own tools does.
        """
        with self.relay.call() as asked:
            result = self._called(name, arguments)
        asked.check()
        return result

    def request(self, request: types.Request[Any, Any], result: type[Any]) -> Any:
        """Send a request of an extension and wait. Raises ToolError when it fails."""

        async def sending() -> Any:
            return await self.client.session.send_request(request, result, request_read_timeout_seconds=START)

        try:
            return self.portal.call(sending)
        except (Exception, CancelledError) as wrong:  # noqa: BLE001 - whatever the SDK raises for a server that is gone
            raise ToolError(f"the server `{self.listed.name}`: {clean(str(wrong))[:_LONGEST]}") from None

    def _called(self, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        context = contextvars.copy_context()  # the client tells of progress in a task of its own

        async def told(progress: float, total: float | None, message: str | None) -> None:
            context.run(report, message or "", value=progress, total=total)

        async def calling() -> types.CallToolResult:
            return await self.client.call_tool(
                name, dict(arguments), read_timeout_seconds=PATIENCE, progress_callback=told
            )

        future = self.portal.start_task_soon(calling)
        underway().ending(future.cancel)
        try:
            return future.result()
        except (Exception, CancelledError) as wrong:  # noqa: BLE001 - whatever the SDK raises for a server that is gone
            reason = clean(str(wrong))[:_LONGEST]
            raise ToolError(f"the server `{self.listed.name}` did not answer it: {reason}") from None


@contextlib.contextmanager
def connected(
    servers: Sequence[Listed], *, own: Sequence[str], environ: Mapping[str, str]
) -> Iterator[tuple[tuple[RemoteTool, ...], tuple[Problem, ...]]]:
    """Start servers, confined, and give their tools; one that does not start is left out, and said.

    `own` is the command line of this skillrun, by which each server is confined.
    """
    with start_blocking_portal() as portal, contextlib.ExitStack() as stack:
        tools: list[RemoteTool] = []
        problems: list[Problem] = []
        for one in servers:
            try:
                found, left = _start(one, portal, stack, own=own, environ=environ)
            except UsageError as wrong:
                problems += wrong.problems
                continue
            tools += found
            problems += left
        yield tuple(tools), tuple(problems)


def _start(
    listed: Listed,
    portal: BlockingPortal,
    stack: contextlib.ExitStack,
    *,
    own: Sequence[str],
    environ: Mapping[str, str],
) -> tuple[list[RemoteTool], list[Problem]]:
    where = [] if listed.workspace is None else ["--workspace", listed.workspace]
    words = [*own, "mcp-run", "--ceiling", listed.ceiling, *where, "--", *listed.command]
    try:
        wire = far_server(listed.name, words, {**environ, **listed.env})
        relay = Relay()
        client = Client(wire, read_timeout_seconds=START, elicitation_callback=relay, extensions=[FarTasks()])
        stack.enter_context(portal.wrap_async_context_manager(client))
        told = portal.call(_tools, client)
    except Exception as wrong:  # noqa: BLE001 - whatever a stranger's server does at its start
        message = f"the server `{listed.name}` can't be used: {_first(wrong)}"
        raise UsageError(error("mcp-server", message)) from None
    return _made(Connection(listed, client, portal, relay), told)


def _first(wrong: BaseException) -> str:
    """Return what went wrong, out of the groups that tasks wrap it in."""
    while isinstance(getattr(wrong, "exceptions", None), tuple):
        wrong = wrong.exceptions[0]  # type: ignore[attr-defined] # a group has no name before Python 3.11
    return f"{type(wrong).__name__}: {wrong}"


async def _tools(client: Client) -> list[types.Tool]:
    found: list[types.Tool] = []
    cursor: str | None = None
    with anyio.fail_after(START):
        for _ in range(_MOST_PAGES):  # a page may be empty, and another one follow it for ever
            page = await client.list_tools(cursor=cursor)
            found += page.tools[: MOST_TOOLS + 1]
            cursor = page.next_cursor
            if cursor is None or len(found) > MOST_TOOLS:
                break
    return found


def _made(connection: Connection, told: Sequence[types.Tool]) -> tuple[list[RemoteTool], list[Problem]]:
    tools: list[RemoteTool] = []
    problems: list[Problem] = []
    names: set[str] = set()
    server = connection.listed.name
    for one in told[:MOST_TOOLS]:
        identity = Identity("mcp", server, one.name)
        name = script_name(server, one.name.replace(".", "_"), (), identity)
        name = with_hash(name, identity.digest()) if name in names else name
        if name in names:
            problems.append(warning("mcp-tool", f"`{server}` lists a tool twice; the first one is kept"))
            continue
        names.add(name)
        try:
            tools.append(RemoteTool(connection, one, name=name, digest=digest_of(one)))
        except (UsageError, ValueError) as wrong:
            problems.append(warning("mcp-tool", f"`{name}` is left out: {wrong}"))
            continue
        pinned = connection.listed.pins.get(one.name)
        if pinned is not None and pinned != tools[-1].digest:
            message = f"`{name}` is not what was pinned, so a person is asked before each call"
            advice = f"look at what it says now; then pin {tools[-1].digest}"
            problems.append(warning("mcp-pin", message, help=advice))
    if len(told) > MOST_TOOLS:
        message = f"`{server}` lists more than {MOST_TOOLS} tools; the rest is left out"
        problems.append(warning("mcp-tool", message))
    return tools, problems


def _portable(schema: Any, depth: int = 0) -> Any:
    """Return a schema unless it is too deep or leads elsewhere: nothing is fetched for a stranger. Raises ValueError."""
    if depth > _DEEPEST:
        raise ValueError("its schema is nested too deep")
    if isinstance(schema, list):
        return [_portable(one, depth + 1) for one in schema]
    if not isinstance(schema, dict):
        return schema
    for key in ("$ref", "$dynamicRef"):
        if key in schema and not str(schema[key]).startswith("#"):
            raise ValueError("its schema refers to another document")
    return {key: _portable(one, depth + 1) for key, one in schema.items() if key not in {"$id", "$schema"}}


def _outcome(result: types.CallToolResult) -> Outcome:
    texts: list[str] = []
    files: list[Attachment] = []
    for number, block in enumerate(result.content):
        if isinstance(block, types.TextContent):
            texts.append(block.text)
        elif isinstance(block, types.ImageContent | types.AudioContent):
            with contextlib.suppress(ValueError):
                files.append(
                    Attachment(f"{block.type}-{number}", block.mime_type, base64.b64decode(block.data))
                )
        else:
            texts.append(json.dumps(block.model_dump(mode="json", by_alias=True, exclude_none=True)))
    structured = cleaned(result.structured_content) if result.structured_content is not None else None
    if structured is not None and texts and len(json.dumps(structured)) > _LONGEST_SCHEMA:
        structured = None  # its texts say it, and have bounds of their own
    if not texts and structured is not None:
        texts.append(json.dumps(structured, ensure_ascii=False))
    return Outcome(
        clean("\n".join(texts)), is_error=result.is_error, structured=structured, attachments=tuple(files)
    )
