"""The service in both eras, with the SDK's own client: definitions, results, progress, pages, changes."""

from __future__ import annotations

import asyncio
import base64
import functools
import json
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import jsonschema
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from skillrun.mcp import paging, server
from skillrun.mcp.calls import Report
from skillrun.mcp.results import META, OUTPUT_SCHEMA
from skillrun.mcp.shelf import Shelf
from skillrun.tools.events import Progress
from skillrun.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_world import World

ERAS = ["legacy", "auto"]


def in_loop(test: Callable[..., Any]) -> Callable[..., None]:
    """Run a test in a loop of its own."""

    @functools.wraps(test)
    def run(**given: Any) -> None:
        async def bounded() -> None:
            with anyio.fail_after(100):
                await test(**given)

        anyio.run(bounded)

    return run


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_definitions_and_results(world: World, era: str) -> None:
    """Schema, title, hints from what is granted; the slim result fits its schema; the receipt says what was enforced."""
    world.skill(
        "demo",
        say="""
            import argparse, json
            p = argparse.ArgumentParser()
            p.add_argument("name"); p.add_argument("--times", type=int, default=1)
            print(json.dumps(vars(p.parse_args())))
        """,
        fail="import sys; print('part'); sys.exit('boom')",
        slow="import time; time.sleep(60)",
    )
    world.skill(
        "writer", front="fs_write: ./out\nnetwork: true\ntimeout: 1\n", go="import time; time.sleep(60)"
    )
    # The network is refused by it.
    ceiling = world.ceiling('sandbox: {fs_read: ["${workspace}"], fs_write: ["${workspace}/out"]}')
    async with world.client(era, ceiling) as client:
        listed = await client.list_tools()
        tools = {tool.name: tool for tool in listed.tools}
        assert list(tools) == ["demo__fail", "demo__say", "demo__slow", "writer__go"]
        say = tools["demo__say"]
        assert say.title == "demo: say"
        assert say.input_schema["properties"]["times"]["type"] == "integer"
        assert say.output_schema == OUTPUT_SCHEMA
        hints = say.annotations
        assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (True, False, False)
        hints = tools["writer__go"].annotations
        assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (False, True, False)

        done = await client.call_tool("demo__say", {"name": "Ada", "times": 3})
        assert not done.is_error
        assert done.structured_content["json"] == {"name": "Ada", "times": 3}
        assert json.loads(done.content[0].text) == {"name": "Ada", "times": 3}
        receipt = done.meta[META]
        assert receipt["guarantees"]["fs-read"] == "enforced"
        assert receipt["digest"].startswith("sha256:")

        failed = await client.call_tool("demo__fail")
        assert failed.is_error
        assert failed.structured_content["exit_code"] == 1
        assert failed.content[0].text == "Error (exit 1):\npart\nboom"
        late = await client.call_tool("writer__go")
        assert late.is_error
        assert late.structured_content["termination"] == "timed_out"
        # The cuts are the operator's: nothing of them is in what a client gets.
        assert "refused" not in json.dumps(late.model_dump(mode="json"))
        for result in (done, failed, late):
            jsonschema.validate(result.structured_content, OUTPUT_SCHEMA)

        wrong = await client.call_tool("demo__say", {"nom": "Ada"})
        assert wrong.is_error
        assert "nom" in wrong.content[0].text
        with pytest.raises(MCPError) as caught:
            await client.call_tool("demo__sa")
        assert caught.value.error.code == types.INVALID_PARAMS


@in_loop
async def test_progress_that_the_end_of_a_call_interrupts_is_told_once() -> None:
    """The script has ended while a word is on its way to the client: it is told once, with its own number."""
    told: list[float] = []
    begun, free = asyncio.Event(), asyncio.Event()

    class Slow:
        async def report_progress(self, value: float, *_: object) -> None:
            begun.set()
            await free.wait()
            told.append(value)

    report = Report(Slow())  # type: ignore[arg-type]
    report.add(Progress("at", 5.0, 9.0))
    async with anyio.create_task_group() as group:
        group.start_soon(report.tell)
        await begun.wait()
        group.cancel_scope.cancel()
        asyncio.get_running_loop().call_later(0.05, free.set)
    await report.rest()
    assert told == [5.0]


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_files_long_output_and_progress(world: World, era: str) -> None:
    """Images and short texts inline, other files and long texts as links that can be read; progress rises and comes before the result."""
    world.skill(
        "demo",
        files="""
            import os, json
            fd = int(os.environ["SKILLRUN_EVENTS_FD"])
            for value in (1, 5, 3, None):
                os.write(fd, (json.dumps({"progress": "at", "value": value, "total": 9}) + "\\n").encode())
            folder = os.environ["SKILLRUN_OUTPUT_DIR"]
            open(folder + "/a.png", "wb").write(b"\\x89PNG")
            open(folder + "/b.wav", "wb").write(b"wav")
            open(folder + "/c.bin", "wb").write(b"\\xff\\x00")
            open(folder + "/d.txt", "w").write("short")
            print("x" * 20000)
        """,
    )
    seen: list[tuple[float, float | None, str | None]] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with world.client(era) as client:
        done = await client.call_tool("demo__files", progress_callback=told)
        kinds = [one.type for one in done.content]
        assert kinds == ["text", "resource_link", "image", "audio", "resource_link", "resource"]
        assert len(done.content[0].text) < 11_000
        assert base64.b64decode(done.content[2].data) == b"\x89PNG"
        whole = await client.read_resource(done.content[1].uri)
        assert whole.contents[0].text.startswith("x" * 20000)
        binary = await client.read_resource(done.content[4].uri)
        assert base64.b64decode(binary.contents[0].blob) == b"\xff\x00"
        assert done.content[5].resource.text == "short"
        slim = done.structured_content
        assert slim["truncated"]
        assert len(slim["stdout"]) < 11_000
        assert [one["name"] for one in slim["files"]] == ["a.png", "b.wav", "c.bin", "d.txt"]
        with pytest.raises(MCPError):
            await client.read_resource("skillrun-output://guess/a.png")
    values = [value for value, _, _ in seen]
    assert len(values) == 4
    assert values == sorted(set(values))
    assert seen[1] == (5.0, 9.0, "at")


@in_loop
async def test_a_result_that_no_json_takes_is_cleaned(world: World) -> None:
    """Half characters, numbers beyond JSON and deep nesting in what a script prints never break an answer."""
    world.skill(
        "odd",
        half='print(\'{"a": "\\\\ud800", "b": NaN}\')',
        deep="print('[' * 900 + ']' * 900)",
        raw="import os; os.write(1, b'\\xed\\xa0\\x80\\x00\\x1b[2J')",
    )
    async with world.client() as client:
        for name in ("odd__half", "odd__deep", "odd__raw"):
            done = await client.call_tool(name)
            assert not done.is_error
            json.dumps(done.model_dump(mode="json"), allow_nan=False).encode()


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_a_cancelled_call_frees_its_place(world: World, era: str) -> None:
    """A client that gives up ends the script; more calls than places, all given up, leave room for the next."""
    world.skill("demo", slow="import time; time.sleep(100)", ok="print('fine')")
    async with world.client(era) as client:
        async with anyio.create_task_group() as group:
            for _ in range(12):
                group.start_soon(client.call_tool, "demo__slow")
            await anyio.sleep(1)
            group.cancel_scope.cancel()
        with anyio.fail_after(30):
            assert (await client.call_tool("demo__ok")).content[0].text == "fine"


@pytest.mark.parametrize("era", ERAS)
@in_loop
async def test_changed_skills_are_told_and_served(
    world: World, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that comes is listed and can be called; clients of both eras are told."""
    monkeypatch.setattr(server, "LOOK", 0.1)
    world.skill("demo", one="print(1)")
    told = anyio.Event()

    async def heard(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    service = world.service()
    from mcp.client.client import Client

    async with anyio.create_task_group() as group:
        group.start_soon(service.watch)
        made = service.server()
        client = Client(made, mode=era, message_handler=heard)
        async with client:
            assert len((await client.list_tools()).tools) == 1
            await anyio.sleep(0.3)

            async def change() -> None:
                await anyio.sleep(0.5)
                (world.workspace / "skills/demo/scripts/two.py").write_text(
                    "#!/usr/bin/env python3\nprint(2)\n"
                )

            if era == "auto":
                group.start_soon(change)
                async with client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        break
            else:
                await change()
                await told.wait()
            names = [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]
            assert names == ["demo__one", "demo__two"]
            assert (await client.call_tool("demo__two")).content[0].text == "2"
        group.cancel_scope.cancel()
    service.close()


def test_pages_cover_every_tool_once_also_when_the_list_changes() -> None:
    """Pages follow the names; one that goes or comes between two pages shifts nothing; a stranger's cursor is refused."""

    def tool(number: int) -> Tool:
        return Tool.create(name=f"t{number:03}", execute=lambda _: "")

    def name(one: Tool) -> str:
        return one.full_name

    tools = [tool(number) for number in (*range(90, 150), *range(90))]
    seen: list[str] = []
    cursor = None
    while True:
        found, cursor = paging.page(tools, name, cursor)
        seen += [one.full_name for one in found]
        tools = [one for one in tools if one.full_name != "t003"]
        if cursor is None:
            break
    assert seen == [f"t{number:03}" for number in range(150)]
    for stranger in ("", "x", "YWZ0", "💥", base64.b64encode(b"\xff\xff").decode()):
        with pytest.raises(MCPError):
            paging.page(tools, name, stranger)


def test_the_shelf_forgets_the_oldest() -> None:
    """What results leave is bounded in all, and a link can't be guessed from another."""
    shelf = Shelf(most=10)
    kept = [shelf.put("a/../b", "text/plain", b"12345") for _ in range(3)]
    assert shelf.get(kept[0].uri) is None
    assert shelf.get(kept[2].uri) == kept[2]
    assert len({one.uri for one in kept}) == 3
    assert kept[2].uri.endswith("/a%2F..%2Fb")


@in_loop
async def test_progress_only_rises() -> None:
    """Whatever numbers a script says, what a client is told only rises, and a flood is cut to the newest."""
    told: list[float] = []

    class Ear:
        async def report_progress(self, value: float, _total: float | None, _message: str | None) -> None:
            told.append(value)

    from skillrun.tools.events import Progress

    report = Report(Ear())  # type: ignore[arg-type]
    for number in range(1000):
        report.add(Progress("x", float(number % 7), None))
    await anyio.lowlevel.checkpoint()
    await report.rest()
    assert len(told) <= 32
    assert told == sorted(set(told))


@pytest.mark.parametrize("ceiling", ["sandbox: {enabled: false}\n", "sandbox: {require: none}\n"])
@in_loop
async def test_nothing_runs_unconfined(world: World, ceiling: str) -> None:
    """A ceiling that turns the sandbox off is for the command line: a client's call is refused, or confined all the same."""
    world.skill("demo", go="import os; open('ran', 'w'); print(os.path.exists('ran'))")
    async with world.client(ceiling=world.ceiling(ceiling)) as client:
        done = await client.call_tool("demo__go")
    assert done.is_error
    assert not (world.workspace / "ran").exists()
    if "enabled" in ceiling:
        assert "it can't be called here" in done.content[0].text
        assert world.results[-1].error.problem.rule == "mcp-unconfined"
