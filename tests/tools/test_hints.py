"""Hints: what a tool says it can do to the world comes from what it can be granted, and is never too little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skillrun.tools.outcome import ToolError
from skillrun.tools.script_tool import script_tools

if TYPE_CHECKING:
    from conftest import World

HARMLESS = (True, False, False)
WRITES = (False, True, False)
NETWORK = (False, False, True)
EVERYTHING = (False, True, True)
SCRIPT = "#!/bin/sh\necho ok\n"
ASKS = "fs_write: ./out\nnetwork: true\n"
OPEN = 'sandbox: {{fs_write: ["${{workspace}}/{}"], network: {}}}\n'


def told(world: World, ceiling: str, front: str = ASKS) -> tuple[bool, ...]:
    """Return the three hints of a tool under a ceiling."""
    world.skill("demo", front=front, scripts={"go.sh": SCRIPT})
    hints = world.tools(ceiling)["demo__go"].annotations
    return hints["readOnlyHint"], hints["destructiveHint"], hints["openWorldHint"]


@pytest.mark.parametrize(
    ("ceiling", "front", "hints"),
    [
        ("sandbox: {}\n", ASKS, HARMLESS),
        (OPEN.format("out", "false"), ASKS, WRITES),
        (OPEN.format("other", "false"), ASKS, HARMLESS),
        (OPEN.format("out/deeper", "false"), ASKS, WRITES),
        ("sandbox: {network: [example.com:443]}\n", ASKS, NETWORK),
        ("sandbox: {network: [example.com:443]}\n", "network: [other.example:443]\n", HARMLESS),
        (OPEN.format("out", "true"), ASKS, (False, True, True)),
        (OPEN.format("out", "true"), "", HARMLESS),
        ("sandbox: {}\n", "trust: core\n", HARMLESS),
        ("sandbox: {enabled: false}\n", "", EVERYTHING),
        ("sandbox: {require: none}\n", "", EVERYTHING),
        (
            "sandbox: {}\n",
            "metadata: {skillrun: {scripts: {go.sh: {parameters: {to: {type: string, access: write}}}}}}\n",
            WRITES,
        ),
    ],
)
def test_hints_are_of_what_is_granted(
    world: World, ceiling: str, front: str, hints: tuple[bool, ...]
) -> None:
    """What the ceiling cuts is not told; what it leaves, what an argument may name and what is not confined is."""
    assert told(world, ceiling, front) == hints


def test_a_workspace_that_was_replaced_is_no_ground_for_hints(world: World) -> None:
    """What a tool can do is told for the workspace that was looked at; behind a link in its place anything may be."""
    world.skill("demo", front=ASKS, scripts={"go.sh": SCRIPT})
    runner = world.runner("sandbox: {}\n")
    away = world.workspace.with_name("away")
    world.workspace.rename(away)
    world.workspace.symlink_to(away)
    (tool,), _ = script_tools(runner)
    hints = tool.annotations
    assert (hints["readOnlyHint"], hints["destructiveHint"], hints["openWorldHint"]) == EVERYTHING


def test_a_grant_that_grew_behind_the_list_is_not_used(world: World) -> None:
    """A link that is turned into what the ceiling allows makes a harmless tool write: it is refused once and told anew."""
    (world.workspace / "out").mkdir()
    (world.workspace / "elsewhere").mkdir()
    link = world.workspace / "link"
    link.symlink_to("elsewhere")
    world.skill(
        "demo", front="fs_write: ./link\n", scripts={"go.sh": "#!/bin/sh\necho x > out/ran && echo ok\n"}
    )
    tool = world.tools(OPEN.format("out", "false"))["demo__go"]
    assert tool.annotations["readOnlyHint"]
    link.unlink()
    link.symlink_to("out")
    refused = tool.call()
    assert isinstance(refused.error, ToolError)
    assert "list them again" in refused.text
    assert not (world.workspace / "out" / "ran").exists()
    assert not tool.annotations["readOnlyHint"]
    assert not tool.call().is_error
    assert (world.workspace / "out" / "ran").exists()
