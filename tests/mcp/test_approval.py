"""Approval: a person agrees to one call, exactly that call, or nothing starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from test_service import ERAS, in_loop

from skillrun.mcp import approval

if TYPE_CHECKING:
    from mcp_world import World

COUNT = "open('out/ran', 'a').write('x'); print('ran')"
FRONT = "fs_write: ./out\nmetadata:\n  skillrun:\n    approval: true\n"
OPEN = """
    sandbox:
      fs_read: ["${workspace}"]
      fs_write: ["${workspace}/out"]
"""


def ran(world: World) -> int:
    """Count the runs."""
    path = world.workspace / "out" / "ran"
    return len(path.read_text()) if path.exists() else 0


class Person:
    """Answers what is asked, and keeps it."""

    def __init__(self, action: str = "accept", content: Any = None, then: Any = None) -> None:
        self.action = action
        self.content = {"agree": True} if content is None else content
        self.asked: list[str] = []
        self.then = then

    async def __call__(self, _context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Answer one question."""
        self.asked.append(params.message)
        if self.then is not None:
            self.then()
        content = self.content if self.action == "accept" else None
        return types.ElicitResult(action=self.action, content=content)


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_a_person_is_asked_before_each_call(world: World, era: str) -> None:
    """The question shows skill, arguments and rights, escaped; a yes runs once; each call is a question of its own."""
    world.skill("careful", front=FRONT, go=f"import sys; {COUNT}")
    person = Person()
    async with world.client(era, world.ceiling(OPEN), elicitation_callback=person) as client:
        for number in (1, 2):
            done = await client.call_tool("careful__go", {"args": ["\x1b[2J\u202e"]})
            assert done.content[0].text == "ran"
            assert ran(world) == number
    assert len(person.asked) == 2
    assert "`careful`" in person.asked[0]
    assert "write" in person.asked[0]
    assert "\x1b" not in person.asked[0]
    assert "\u202e" not in person.asked[0]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("action", "content"), [("decline", None), ("cancel", None), ("accept", {}), ("accept", {"agree": "yes"})]
)
@in_loop
async def test_anything_but_a_yes_starts_nothing(world: World, era: str, action: str, content: Any) -> None:
    """Declined, closed, empty or of another type: the model reads a refusal and nothing ran."""
    world.skill("careful", front=FRONT, go=COUNT)
    person = Person(action, content)
    async with world.client(era, world.ceiling(OPEN), elicitation_callback=person) as client:
        done = await client.call_tool("careful__go")
        assert done.is_error
        assert "person" in done.content[0].text
    assert ran(world) == 0


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_a_client_that_can_not_ask_is_refused(world: World, era: str) -> None:
    """Without elicitation the call is refused with the reason, also where the operator's file wants to be asked."""
    world.skill("careful", front=FRONT, go=COUNT)
    world.skill("writer", front="fs_write: ./out\n", go=COUNT)
    ceiling = world.ceiling(f"{OPEN}    tools: {{approve: [write]}}\n")
    async with world.client(era, ceiling) as client:
        for name in ("careful__go", "writer__go"):
            if era == "auto":
                with pytest.raises(MCPError, match="can't ask") as caught:
                    await client.call_tool(name)
                assert caught.value.error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
                continue
            done = await client.call_tool(name)
            assert done.is_error
            assert "can't ask" in done.content[0].text
    assert ran(world) == 0


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_what_changes_behind_the_question_is_not_run(world: World, era: str) -> None:
    """A skill that is changed while the person thinks is not what was agreed to."""
    folder = world.skill("careful", front=FRONT, go=COUNT)
    # A file beside the script: the tool's own look at SKILL.md and the script does not see it.
    person = Person(then=lambda: Path(folder, "data.txt").write_text("new"))
    async with world.client(era, world.ceiling(OPEN), elicitation_callback=person) as client:
        done = await client.call_tool("careful__go")
        assert done.is_error
        assert "changed" in done.content[0].text
    assert ran(world) == 0


@in_loop
async def test_a_question_that_nobody_answers_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while the call is refused and nothing ran; more open questions than can be kept are refused at once."""
    monkeypatch.setattr(approval, "PATIENCE", 1.0)
    monkeypatch.setattr(approval, "MOST_OPEN", 2)
    world.skill("careful", front=FRONT, go=COUNT)
    asks = (
        "print(json.dumps({'ask': 'Who?', 'name': 'who', 'fields': {'a': {'type': 'string'}}}), file=events)"
    )
    opened = "open(int(os.environ['SKILLRUN_EVENTS_FD']), 'w')"
    world.skill("asks", go=f"import json, os\nwith {opened} as events: {asks}")

    async def nobody(_context: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
        await anyio.sleep(60)
        raise AssertionError

    told: list[str] = []
    async with world.client("legacy", world.ceiling(OPEN), elicitation_callback=nobody) as client:

        async def call() -> None:
            told.append((await client.call_tool("careful__go")).content[0].text)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(call)
        await call()
        told.append((await client.call_tool("asks__go")).content[0].text)
    assert ["too many" in text for text in told] == [True, False, False, False, False]
    assert all("nobody answered" in text for text in told[1:])
    assert ran(world) == 0


@in_loop
async def test_an_answer_is_for_one_request_alone(world: World) -> None:
    """A sealed state is refused with other arguments, for another tool, made up, and a second time."""
    world.skill("careful", front=FRONT, go=COUNT, other=COUNT)
    service = world.service(world.ceiling(OPEN))
    yes = {"approval": types.ElicitResult(action="accept", content={"agree": True})}
    async with Client(service.server(), elicitation_callback=Person()) as client:
        session = client.session

        async def ask(name: str, arguments: dict[str, Any], **more: Any) -> Any:
            return await session.call_tool(name, arguments, allow_input_required=True, **more)

        first = await ask("careful__go", {"args": ["a"]})
        assert isinstance(first, types.InputRequiredResult)
        state = first.request_state
        for name, arguments, given in (
            ("careful__go", {"args": ["b"]}, state),
            ("careful__other", {"args": ["a"]}, state),
            ("careful__go", {"args": ["a"]}, state[:-4] + "AAAA"),
        ):
            with pytest.raises(MCPError):
                await ask(name, arguments, request_state=given, input_responses=yes)
        # An answer without a state is no answer: it is asked again.
        again = await ask("careful__go", {"args": ["a"]}, input_responses=yes)
        assert isinstance(again, types.InputRequiredResult)
        assert ran(world) == 0
        done = await ask("careful__go", {"args": ["a"]}, request_state=state, input_responses=yes)
        assert not done.is_error
        assert ran(world) == 1
        twice = await ask("careful__go", {"args": ["a"]}, request_state=state, input_responses=yes)
        assert twice.is_error
        assert "used" in twice.content[0].text
    assert ran(world) == 1
    service.close()
    await anyio.lowlevel.checkpoint()
