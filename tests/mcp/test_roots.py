"""Roots: what a client says narrows the workspace, and never widens it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from test_service import in_loop

from skillrun.mcp.approval import RefusedError
from skillrun.mcp.roots import left_of

if TYPE_CHECKING:
    from mcp_world import World

LOOK = """
    import os, sys
    found = [os.getcwd()]
    for name in sys.argv[1:]:
        try: found.append(open(name).read())
        except OSError as wrong: found.append(type(wrong).__name__)
    print(*found)
"""


async def changed(client: Client) -> None:
    """Tell that the roots are others now; the SDK warns that roots are deprecated, which is known."""
    with pytest.warns(MCPDeprecationWarning):
        await client.session.send_roots_list_changed()


@in_loop
async def test_roots_narrow_the_workspace(world: World) -> None:
    """A script works in the client's folder and reads nothing else of the workspace; when the roots change, in the new one."""
    world.skill("demo", front="fs_read: .\n", look=LOOK)
    for name in ("one", "two"):
        (world.workspace / name).mkdir()
        (world.workspace / name / "file").write_text(name)
    (world.home / "file").write_text("secret")
    roots = [world.workspace / "one"]

    async def told(_context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=path.as_uri()) for path in roots])

    files = [str(world.workspace / name / "file") for name in ("one", "two")] + [str(world.home / "file")]
    service = world.service()
    async with Client(service.server(), mode="legacy", list_roots_callback=told) as client:

        async def look() -> list[str]:
            done = await client.call_tool("demo__look", {"args": files})
            return done.content[0].text.split()

        gone = "FileNotFoundError"
        assert await look() == [str(roots[0]), "one", gone, gone]
        roots[:] = [world.home]
        assert await look() == [str(world.workspace / "one"), "one", gone, gone]
        await changed(client)
        refused = await client.call_tool("demo__look", {"args": files})
        assert refused.is_error
        assert "share nothing" in refused.content[0].text
        with pytest.raises(MCPError):
            await client.list_tools(cache_mode="bypass")
        roots[:] = [world.workspace.parent]
        await changed(client)
        assert await look() == [str(world.workspace), "one", "two", gone]
    service.close()


@in_loop
async def test_a_root_that_is_turned_elsewhere_is_not_followed(world: World) -> None:
    """Between two calls the client's folder becomes a link out of the workspace: nothing runs there, and the reason is the operator's."""
    world.skill("demo", front="fs_read: .\n", look=LOOK)
    (world.workspace / "one").mkdir()
    (world.home / "docs").mkdir()
    (world.home / "docs" / "file").write_text("secret")

    async def told(_context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=(world.workspace / "one").as_uri())])

    service = world.service()
    async with Client(service.server(), mode="legacy", list_roots_callback=told) as client:
        assert not (await client.call_tool("demo__look")).is_error
        (world.workspace / "one").rmdir()
        for turned in (lambda: None, lambda: (world.workspace / "one").symlink_to(world.home / "docs")):
            turned()
            done = await client.call_tool("demo__look", {"args": ["file"]})
            assert done.is_error
            assert done.content[0].text == "Error (demo__look): it can't be called here"
            assert world.results[-1].error.problem.rule == "workspace-gone"
    service.close()


@in_loop
async def test_a_root_that_becomes_a_link_while_it_is_looked_at_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the look at it, and before a runner is made for it, a folder is turned out of the workspace: it is not served."""
    world.skill("demo", front="fs_read: .\n", look=LOOK)
    folder = world.workspace / "one"
    folder.mkdir()
    elsewhere = world.workspace.parent / "elsewhere"
    elsewhere.mkdir()

    def late(workspace: Path, uris: Any) -> Path:
        found = left_of(workspace, uris)
        folder.rmdir()
        folder.symlink_to(elsewhere)
        return found

    async def told(_context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=folder.as_uri())])

    monkeypatch.setattr("skillrun.mcp.roots.left_of", late)
    service = world.service()
    async with Client(service.server(), mode="legacy", list_roots_callback=told) as client:
        done = await client.call_tool("demo__look")
        assert done.is_error
        assert "roots" in done.content[0].text
        assert world.results == []
    service.close()


@in_loop
async def test_a_client_that_keeps_its_roots_to_itself_is_refused(world: World) -> None:
    """One that has roots and answers with an error is not taken for one without."""
    world.skill("demo", front="fs_read: .\n", look=LOOK)

    async def silent(_context: Any) -> types.ErrorData:
        return types.ErrorData(code=-1, message="no")

    service = world.service()
    async with Client(service.server(), mode="legacy", list_roots_callback=silent) as client:
        done = await client.call_tool("demo__look")
        assert done.is_error
        assert "roots" in done.content[0].text
    service.close()


def test_what_roots_leave(tmp_path: Path) -> None:
    """Links are followed before anything is compared; several folders leave what holds them all; the rest counts for nothing."""
    work = tmp_path.resolve() / "work"
    (work / "a" / "b").mkdir(parents=True)
    (work / "a" / "c").mkdir()
    (work / "file").write_text("")
    (work / "out").symlink_to(tmp_path)
    (tmp_path / "in").symlink_to(work / "a")
    (tmp_path / "work-not").mkdir()

    def left(*paths: Path | str) -> Path:
        return left_of(work, [path if isinstance(path, str) else path.as_uri() for path in paths])

    assert left(work / "a" / "b") == work / "a" / "b"
    assert left(work / "a" / "b", work / "a" / "c") == work / "a"
    assert left(tmp_path / "in") == work / "a"
    assert left(work / "out") == work
    assert left(work) == left(Path("/")) == work
    assert left(work / "a", tmp_path / "work-not", "http://x/", "file://evil/etc") == work / "a"
    assert left() == work
    for nothing in (
        [work / "file"],
        [work / "none"],
        [tmp_path / "work-not"],
        ["http://x/"],
        ["file:///%00"],
        ["file:"],
    ):
        with pytest.raises(RefusedError):
            left(*nothing)
