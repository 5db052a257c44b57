"""Tasks of other servers: the call waits as for any task, in a conversation or for the client of ours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import anyio
import mcp_types as types
import pytest
from anyio.from_thread import start_blocking_portal
from mcp.client.client import Client
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from test_approval import OPEN, ran
from test_asking import ASKS, WRITES, People
from test_service import ERAS, in_loop

from skillrun.conversation.conversation import Conversation, Progress
from skillrun.conversation.entry import State
from skillrun.conversation.messages import Answered, Message, Reply, Said
from skillrun.conversation.sqlite import SqliteStore
from skillrun.mcp.far_tasks import EXTENSION, FarTasks, Handed, far_task
from skillrun.mcp.offer import Offer
from skillrun.mcp.relay import Relay
from skillrun.mcp.remote import Connection, RemoteTool
from skillrun.mcp.servers import Listed
from skillrun.tools.box import Toolbox
from skillrun.tools.outcome import ToolCall
from skillrun.tools.script_tool import ScriptTool
from skillrun.tools.task import Status, Task
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from anyio.from_thread import BlockingPortal
    from mcp_world import World

    from skillrun.conversation.model import Offer as Offered


class Bank:
    """A server that answers a call with a task: it works, asks once, and is done."""

    def __init__(self, *, asks: bool = True, ends: str = "completed") -> None:
        self.asks = asks
        self.ends = ends
        self.looks = 0
        self.calls = 0
        self.answers: dict[str, Any] = {}
        self.cancelled = False

    def task(self, status: str, **more: Any) -> dict[str, Any]:
        """Write a task down as the extension has it."""
        return {
            "taskId": "t-1", "status": status, "createdAt": "2026-11-30T00:00:00Z",
            "lastUpdatedAt": "2026-11-30T00:00:00Z", "ttlMs": None, "pollIntervalMs": 200, **more,
        }  # fmt: skip

    def detail(self) -> dict[str, Any]:
        """Say how far it is."""
        self.looks += 1
        if self.cancelled:
            return self.task("cancelled")
        if self.looks == 1:
            return self.task("working", statusMessage="looking\x1b[2J")
        if self.asks and not self.answers:
            form = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
            params = {"mode": "form", "message": "How much?", "requestedSchema": form}
            return self.task(
                "input_required", inputRequests={"sum": {"method": "elicitation/create", "params": params}}
            )
        if self.ends == "failed":
            return self.task("failed", error={"code": -32603, "message": "the vault is empty"})
        text = f"paid {self.answers.get('sum', {}).get('content')}"
        return self.task("completed", result={"content": [{"type": "text", "text": text}], "isError": False})

    def server(self) -> Server[Any]:
        """Make the server."""

        class Raw(types.Result):
            """A result as it is."""

            model_config: ClassVar[Any] = {"extra": "allow"}

        class Params(types.RequestParams):
            """Parameters as they are."""

            model_config: ClassVar[Any] = {"extra": "allow"}

        async def call(_ctx: Any, _params: Any) -> Any:
            self.calls += 1
            return Raw.model_validate({"resultType": "task", **self.task("working")})

        async def tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[types.Tool(name="refund", input_schema={"type": "object"})])

        async def get(_ctx: Any, params: Any) -> Any:
            if params.model_extra["taskId"] != "t-1":
                raise MCPError(types.INVALID_PARAMS, "Task not found")
            return Raw.model_validate({"resultType": "complete", **self.detail()})

        async def update(_ctx: Any, params: Any) -> Any:
            self.answers |= params.model_extra["inputResponses"]
            return Raw.model_validate({"resultType": "complete"})

        async def cancel(_ctx: Any, _params: Any) -> Any:
            self.cancelled = True
            return Raw.model_validate({"resultType": "complete"})

        made: Server[Any] = Server("bank", on_list_tools=tools, on_call_tool=call)
        made.extensions[EXTENSION] = {}
        for method, handler in (("get", get), ("update", update), ("cancel", cancel)):
            made.add_request_handler(f"tasks/{method}", Params, handler)
        return made


def model(messages: Sequence[Message], offer: Offered) -> Reply:
    """Refund, and say what came of it."""
    del offer
    last = messages[-1]
    if isinstance(last, Said):
        return Reply(calls=(ToolCall("bank__refund", {}),))
    assert isinstance(last, Answered)
    return Reply(last.outcomes[0].text)


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    """Give a loop in a thread of its own."""
    with start_blocking_portal() as made:
        yield made


@pytest.fixture
def connected(portal: BlockingPortal) -> Iterator[Any]:
    """Give what connects to a bank and returns its tool."""
    opened: list[Any] = []

    def connect(bank: Bank) -> RemoteTool:
        relay = Relay()
        client = Client(bank.server(), elicitation_callback=relay, extensions=[FarTasks()])
        context = portal.wrap_async_context_manager(client)
        context.__enter__()
        opened.append(context)
        listed = Listed("bank", ("bank",), "default", None, {}, {})
        told = types.Tool(name="refund", description="Refunds.", input_schema={"type": "object"})
        tool = RemoteTool(Connection(listed, client, portal, relay), told, name="bank__refund", digest="x")
        tool.requires_approval = False
        return tool

    yield connect
    for context in opened:
        context.__exit__(None, None, None)


def test_a_task_waits_in_the_conversation_and_its_question_too(connected: Any, tmp_path: Path) -> None:
    """Called once; each look is one question to the server; what a person answers goes on with the same work."""
    bank = Bank()
    store = SqliteStore(tmp_path / "state" / "c.db")
    talk = Conversation(Toolbox([connected(bank)]), model, store=store, name="one")
    (entry,) = talk.ask("refund it").waiting
    assert entry.state is State.PAUSED
    assert bank.looks == 0
    (entry,) = talk.complete().waiting
    assert entry.state is State.PAUSED
    (task,) = talk.tasks()
    assert task.message == "looking"
    assert task.poll_interval == 0.2
    (entry,) = talk.complete().waiting
    assert entry.state is State.AWAITING_INPUT
    assert entry.question is not None
    assert entry.question.message == "How much?"
    again = Conversation(Toolbox([connected(bank)]), model, store=store, name="one")
    again.desk.answer(entry.key, {"sum": 7})
    standing = again.complete()
    while standing.progress is Progress.WAITING:
        standing = again.complete()
    assert standing.text == "paid {'sum': 7}"
    assert bank.calls == 1
    store.close()


def test_a_failed_task_and_a_cancelled_one_are_results(connected: Any) -> None:
    """What fails there is an error that the model reads; a cancel of the conversation reaches the server."""
    bank = Bank(asks=False, ends="failed")
    talk = Conversation(Toolbox([connected(bank)]), model)
    talk.ask("refund it")
    talk.complete()
    assert talk.complete().text == "Error (failed): the vault is empty"
    other = Bank()
    talk = Conversation(Toolbox([connected(other)]), model)
    talk.ask("refund it")
    talk.cancel()
    assert other.cancelled
    assert "cancelled" in talk.complete().text


def test_where_nobody_can_be_asked_a_question_in_the_middle_is_an_error(connected: Any) -> None:
    """Outside of a conversation the task is there to be looked at, and its question can't be answered."""
    bank = Bank()
    tool = connected(bank)
    turn = Toolbox([tool]).turn()
    call = ToolCall("bank__refund", {})
    outcome = turn.answer(call)
    assert outcome.waiting is not None
    outcome = turn.carry_on(call, tool.task(outcome.waiting.state()))
    assert outcome.waiting is not None
    outcome = turn.carry_on(call, tool.task(outcome.waiting.state()))
    assert outcome.is_error
    assert "nobody can be asked here" in outcome.text


def test_a_task_that_the_server_does_not_know_is_an_error(connected: Any) -> None:
    """A server that was started anew has forgotten its tasks: the model reads so, and the conversation goes on."""
    tool = connected(Bank())
    task = far_task(
        "t-2",
        Status.WORKING,
        None,
        None,
        send=tool.task({"status": "working", "message": "", "data": {}, "poll_interval": None}).send,
    )
    outcome = Toolbox([tool]).turn().carry_on(ToolCall("bank__refund", {}), task)
    assert outcome.is_error
    assert "Task not found" in outcome.text


@pytest.mark.parametrize(
    ("wish", "given"), [(1, 0.2), (1e12, 300.0), (5_000, 5.0), (math.nan, None), (None, None)]
)
def test_how_often_a_server_is_looked_at_is_bounded(wish: float | None, given: float | None) -> None:
    """A server's own wish holds between a fifth of a second and five minutes."""
    assert far_task("t", Status.WORKING, None, wish, send=None).poll_interval == given


def test_what_a_server_says_of_its_work_is_bounded() -> None:
    """A message is cut, and what is not seen is taken out: it is kept with each look, and shown to people."""
    message = far_task("t", Status.WORKING, "a\x1b[2J" + "b" * 5_000, None, send=None).message
    assert message == "a" + "b" * 999


def test_a_result_can_not_pass_itself_off_as_a_task() -> None:
    """Whatever a server writes into a result, it is read as a result."""
    made = types.CallToolResult.model_validate(
        {"content": [], "created": {"taskId": "x"}, "_meta": {"created": 1}}
    )
    assert not isinstance(made, Handed)


@pytest.fixture
def in_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every script of a server run as a task."""
    always = property(lambda _: True, lambda _, __: None)
    monkeypatch.setattr(ScriptTool, "background", always, raising=False)


@pytest.mark.usefixtures("in_background")
@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_a_client_waits_for_a_task_of_ours(world: World, era: str) -> None:
    """A client that knows no tasks gets the result and nothing before it."""
    world.skill("slow", go="import time; time.sleep(1.2); print('done')")
    async with world.client(era) as client:
        done = await client.call_tool("slow__go")
    assert not done.is_error
    assert done.content[0].text == "done"


@pytest.mark.usefixtures("in_background")
@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_a_client_that_goes_ends_the_task(world: World, era: str) -> None:
    """A call that is cancelled while its script is in the background ends the script."""
    world.skill(
        "endless",
        front="fs_write: ./out\n",
        go="import time\nwhile True: open('out/ran', 'a').write('x'); time.sleep(.05)",
    )
    async with world.client(era, world.ceiling(OPEN)) as client:
        with anyio.move_on_after(2):
            await client.call_tool("endless__go")
        await anyio.sleep(3)
        before = ran(world)
        assert before
        await anyio.sleep(0.5)
        assert ran(world) == before


@pytest.mark.usefixtures("in_background")
@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_a_script_in_the_background_asks_and_begins_again(world: World, era: str) -> None:
    """Its question ended it, so the answer goes to a new run, in both eras; nothing is called interrupted."""
    world.skill("asks", front=WRITES, go=ASKS)
    people = People({"name": "Ada"}, {"ok": True})
    async with world.client(era, world.ceiling(OPEN), elicitation_callback=people) as client:
        done = await client.call_tool("asks__go")
    assert not done.is_error, done.content[0].text
    assert "'Ada'" in done.content[0].text
    assert ran(world) == 3


class Vault(Tool):
    """Opens slowly, and asks in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0
        self.cancelled: list[Task] = []

    def execute(self) -> Task:
        """Begin."""
        self.begun += 1
        told = self.cancelled

        class Opening(Task):
            """The work."""

            def cancel(self) -> Task:
                """End it."""
                told.append(self)
                return self

        return Opening(poll_interval=0.05)

    def resume(self, task: Task) -> str:
        """Ask, and go on."""
        del task
        return f"opened with {self.ask('The code?', code={'type': 'string'})['code']}"


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_a_question_in_the_middle_of_work_never_does_the_work_twice(world: World, era: str) -> None:
    """Where the client is asked while the call is open it is answered; where it would call again, the work is ended."""
    vault, made = Vault(), Offer.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Offer, "__init__", lambda self, *a, **k: made(self, *a, **{**k, "more": [vault]}))
        people = People({"code": "7"})
        async with world.client(era, elicitation_callback=people) as client:
            done = await client.call_tool("vault")
    assert vault.begun == 1
    if era == "legacy":
        assert done.content[0].text == "opened with 7"
        assert not vault.cancelled
    else:
        assert done.is_error
        assert "in the middle of long work" in done.content[0].text
        assert not people.asked
        assert len(vault.cancelled) == 1
