"""Questions of tools over MCP: asked of the client, answered in the call made again; and those of other servers."""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from anyio.from_thread import start_blocking_portal
from mcp.client.client import Client
from mcp.server import Server
from test_approval import OPEN, ran
from test_service import ERAS, in_loop

from skillrun.conversation.conversation import Conversation, Progress
from skillrun.conversation.messages import Answered, Message, Reply, Said
from skillrun.mcp.relay import Relay, question_from
from skillrun.mcp.remote import Connection, RemoteTool
from skillrun.mcp.servers import Listed
from skillrun.tools.asking import Answer, Answers, Reaction, Settled, answering
from skillrun.tools.box import Toolbox
from skillrun.tools.outcome import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anyio.from_thread import BlockingPortal
    from mcp_world import World

    from skillrun.conversation.model import Offer

ASKS = """
    import json, os, sys
    open("out/ran", "a").write("x")
    answers = json.loads(os.environ.get("SKILLRUN_ANSWERS", "{}"))
    def ask(key, message, **fields):
        if key in answers:
            return answers[key]
        with os.fdopen(int(os.environ["SKILLRUN_EVENTS_FD"]), "w") as events:
            print(json.dumps({"ask": message, "name": key, "fields": fields}), file=events)
        sys.exit(0)
    who = ask("who", "Who is it for?\\x1b[2J\\u202e", name={"type": "string", "title": "N\\u202e", "required": True})
    sure = ask("sure", "Really?", ok={"type": "boolean"}) if who["accepted"] else None
    print(who, sure)
"""
WRITES = "fs_write: ./out\n"


class People:
    """Answers one question after the other, and keeps what was asked."""

    def __init__(self, *answers: dict[str, Any] | str) -> None:
        self.answers = list(answers)
        self.asked: list[types.ElicitRequestParams] = []

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Answer one question: with content, or with an action alone."""
        del context
        self.asked.append(params)
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            return types.ElicitResult(action=answer)
        return types.ElicitResult(action="accept", content=answer)


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_a_script_asks_twice_and_reads_both_answers(world: World, era: str) -> None:
    """Each question is a form with its fields, labelled as the tool's; the script runs once more for each answer."""
    world.skill("asks", front=WRITES, go=ASKS)
    people = People({"name": "Ada"}, {"ok": True})
    async with world.client(era, world.ceiling(OPEN), elicitation_callback=people) as client:
        done = await client.call_tool("asks__go")
    assert not done.is_error
    assert (
        done.content[0].text
        == "{'accepted': True, 'values': {'name': 'Ada'}} {'accepted': True, 'values': {'ok': True}}"
    )
    assert ran(world) == 3
    first = people.asked[0]
    assert isinstance(first, types.ElicitRequestFormParams)
    assert first.message.startswith("The tool `asks__go` asks:\n\nWho is it for?")
    assert "\x1b" not in first.message
    assert "\u202e" not in f"{first.message}{first.requested_schema}"
    assert first.requested_schema["required"] == ["name"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("action", ["decline", "cancel"])
@in_loop
async def test_no_answer_is_told_to_the_script(world: World, era: str, action: str) -> None:
    """A person who declines has answered: the script learns it and goes on without."""
    world.skill("asks", front=WRITES, go=ASKS)
    async with world.client(era, world.ceiling(OPEN), elicitation_callback=People(action)) as client:
        done = await client.call_tool("asks__go")
    assert done.content[0].text == "{'accepted': False, 'values': {}} None"


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_an_answer_that_does_not_fit_is_none(world: World, era: str) -> None:
    """What the client sends is checked against the fields; the model reads what is wrong, and nothing runs on with it."""
    world.skill("asks", front=WRITES, go=ASKS)
    people = People({"name": ["no", "text"]})
    async with world.client(era, world.ceiling(OPEN), elicitation_callback=people) as client:
        done = await client.call_tool("asks__go")
    assert done.is_error
    assert "does not fit" in done.content[0].text
    assert ran(world) == 1


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_where_nobody_can_be_asked_it_is_an_error(world: World, era: str) -> None:
    """A client without elicitation, and fields that no form holds: an error at once, and no hanging call."""
    world.skill("asks", front=WRITES, go=ASKS)
    world.skill(
        "odd", go=ASKS.replace('{"type": "boolean"}', '{"type": "object"}').replace('    open("out', "    #")
    )
    async with world.client(era, world.ceiling(OPEN)) as client:
        done = await client.call_tool("asks__go")
        assert done.is_error
        assert "nobody can be asked here" in done.content[0].text
    people = People({"name": "Ada"})
    async with world.client(era, world.ceiling(OPEN), elicitation_callback=people) as client:
        done = await client.call_tool("odd__go")
        assert done.is_error
        assert "no form of a client can hold" in done.content[0].text
    assert len(people.asked) == 1


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_an_approval_is_asked_for_once_and_the_questions_follow(world: World, era: str) -> None:
    """A yes to a call is good for the whole of it, through all of its questions, and for no second call."""
    front = WRITES + "metadata:\n  skillrun:\n    approval: true\n"
    world.skill("asks", front=front, go=ASKS)
    people = People({"agree": True}, {"name": "Ada"}, {"ok": False}, "decline")
    async with world.client(era, world.ceiling(OPEN), elicitation_callback=people) as client:
        done = await client.call_tool("asks__go")
        assert "'ok': False" in done.content[0].text
        assert (await client.call_tool("asks__go")).is_error
    assert [one.message[:4] for one in people.asked] == ["May ", "The ", "The ", "May "]
    assert ran(world) == 3


@in_loop
async def test_a_state_is_good_for_one_call_of_its_own_arguments(world: World) -> None:
    """A client that keeps the state of an agreed call can use it neither twice nor for other arguments."""
    front = WRITES + "metadata:\n  skillrun:\n    approval: true\n"
    world.skill("asks", front=front, go=ASKS)
    async with world.client("auto", world.ceiling(OPEN), elicitation_callback=People()) as client:

        async def send(arguments: Any, responses: Any = None, state: str | None = None) -> Any:
            return await client.session.call_tool(
                "asks__go",
                arguments,
                input_responses=responses,
                request_state=state,
                allow_input_required=True,
            )

        accept = types.ElicitResult(action="accept", content={"agree": True})
        named = types.ElicitResult(action="accept", content={"name": "Ada"})
        first = await send({"args": ["1"]})
        second = await send({"args": ["1"]}, {"approval": accept}, first.request_state)
        assert ran(world) == 1
        with pytest.raises(Exception, match="requestState"):
            await send({"args": ["2"]}, {"who": named}, second.request_state)
        third = await send({"args": ["1"]}, {"who": named}, second.request_state)
        assert isinstance(third, types.InputRequiredResult)
        assert ran(world) == 2
        again = await send({"args": ["1"]}, {"who": named}, second.request_state)
        assert again.is_error
        assert "used already" in again.content[0].text
        assert ran(world) == 2


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    """Give a loop in a thread of its own, as the servers of an operator's file have."""
    with start_blocking_portal() as made:
        yield made


def refunds(log: list[str], era: str) -> Server[Any]:
    """Make another server, whose tool asks how much and then does it."""
    form = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}

    async def call(ctx: Any, params: Any) -> Any:
        if era == "legacy":
            answer = await ctx.session.elicit_form("How much?", form, related_request_id=ctx.request_id)
        else:
            answer = (params.input_responses or {}).get("how")
            if answer is None:
                question = types.ElicitRequestFormParams(message="How much?", requested_schema=form)
                return types.InputRequiredResult(input_requests={"how": types.ElicitRequest(params=question)})
        if answer.action == "accept":
            log.append(f"{answer.content['sum']}")
        text = types.TextContent(text=f"{answer.action} {answer.content}")
        return types.CallToolResult(content=[text])

    async def tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="refund", input_schema={"type": "object"})])

    return Server("bank", on_list_tools=tools, on_call_tool=call)


@pytest.mark.parametrize("era", ERAS)
def test_a_question_of_another_server_waits_in_the_conversation(portal: BlockingPortal, era: str) -> None:
    """The call waits for the person, the server does nothing meanwhile, and with the answer it does it once."""
    log: list[str] = []
    relay = Relay()

    def model(messages: Sequence[Message], offer: Offer) -> Reply:
        del offer
        last = messages[-1]
        if isinstance(last, Said):
            return Reply(calls=(ToolCall("bank__refund", {}),))
        assert isinstance(last, Answered)
        return Reply(last.outcomes[0].text)

    client = Client(refunds(log, era), mode=era, elicitation_callback=relay)
    with portal.wrap_async_context_manager(client):
        listed = Listed("bank", ("bank",), "default", None, {}, {})
        told = types.Tool(name="refund", description="Refunds.", input_schema={"type": "object"})
        tool = RemoteTool(Connection(listed, client, portal, relay), told, name="bank__refund", digest="x")
        tool.requires_approval = False
        refused = Toolbox([tool]).turn().call("bank__refund", {})
        assert refused.is_error
        assert "nobody can be asked here" in refused.text
        talk = Conversation(Toolbox([tool]), model)
        standing = talk.ask("refund it")
        assert standing.progress is Progress.WAITING
        assert log == []
        (entry,) = standing.waiting
        assert entry.question is not None
        assert entry.question.message == "How much?"
        talk.desk.answer(entry.key, {"sum": 7})
        assert talk.complete().text == "accept {'sum': 7}"
    assert log == ["7"]


def test_a_question_that_could_be_for_either_call_is_for_none() -> None:
    """In the era of the handshake a server does not say which call it asks for: with two under way nobody is asked."""
    form = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": []}
    params = types.ElicitRequestFormParams(message="How much?", requested_schema=form)

    def asks(relay: Relay) -> types.ElicitResult:
        # As the SDK does it: in the task that reads the wire, which belongs to no call.
        return contextvars.Context().run(asyncio.run, relay(None, params))

    relay = Relay()
    known = Answers([Settled(question_from("q0", params), Answer(Reaction.ACCEPTED, {"sum": 7}))])
    with answering(known), relay.call() as first:
        with relay.call() as second:
            assert asks(relay).action == "cancel"
        first.check()
        second.check()
        assert asks(relay).content == {"sum": 7}
    assert asks(relay).action == "cancel"
