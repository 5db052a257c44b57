"""Faults that other teams shipped in their tool layers (cases.md, area D), and traps of the original (facts/robotlab 3.E).

D-08, D-11 and D-12 are about a server's connection: tests/mcp has them.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from skillrun import Tool, Toolbox, ToolCall
from skillrun.tools.names import LONGEST, Identity, class_name, script_name
from skillrun.tools.script_tool import script_tools

if TYPE_CHECKING:
    from conftest import World

HELLO = "#!/bin/sh\necho hi\n"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")


@pytest.mark.parametrize(
    "script", ["run report.py", "a/b.sh", "my.tool.v2.py", "Größe.sh", "--x.sh", "3d.sh", "a__b.sh"]
)
def test_d01_characters_that_a_model_api_does_not_take(world: World, script: str) -> None:
    """Names fit what every API takes, and the call reaches the script by its own name."""
    world.skill("my-skill", scripts={script: HELLO})
    [(name, tool)] = world.tools().items()
    assert NAME.fullmatch(name)
    assert tool.subject.script.name == script
    assert tool.call({}).text == "hi"


def test_d02_names_over_sixty_four_characters(world: World) -> None:
    """At most 63 with a hash, the same on every run and when other skills come or go; a client's prefix has its own room."""
    long_skill, long_script = "a" * 60, "b" * 40 + ".sh"
    world.skill(long_skill, scripts={long_script: HELLO, "b" * 40 + "c.sh": HELLO})
    first = list(world.tools())
    world.skill("unrelated", scripts={"x.sh": HELLO})
    assert [name for name in world.tools() if name.startswith("a")] == first
    assert len(set(first)) == 2
    assert all(len(name) <= LONGEST for name in first)
    assert world.tools()[first[0]].call({}).text == "hi"
    identity = Identity("r", "f", "s")
    assert len(script_name(long_skill, long_script, (), identity, longest=43)) <= 43


def test_d03_two_entries_with_one_name(world: World) -> None:
    """`run.sh` and `run.py` are two tools with a hash each; the same skill in two roots is one, and the other is reported."""
    world.skill("demo", scripts={"run.sh": HELLO, "run.py": "#!/usr/bin/env python3\nprint('py')\n"})
    world.skill("demo", scripts={"run.sh": HELLO}, root=".claude/skills")
    tools, problems = script_tools(world.runner())
    names = [tool.name for tool in tools]
    assert len(set(names)) == 2
    assert all(re.fullmatch(r"demo__run_[0-9a-f]{8}", name) for name in names)
    assert {tool.call({}).text for tool in tools} == {"hi", "py"}
    assert any(problem.rule == "skill-shadowed" for problem in problems)


def test_d04_names_without_ascii_letters(world: World) -> None:
    """Two skills named in Chinese and Cyrillic letters: names that are not empty, differ and stay; the original is said."""
    for name in ("数据", "данные"):
        folder = world.skill("x", scripts={"скрипт.sh": HELLO})
        folder.rename(folder.parent / name)
        manifest = folder.parent / name / "SKILL.md"
        manifest.write_text(manifest.read_text().replace("name: x", f"name: {name}"))
    tools = world.tools()
    assert len(tools) == 2
    assert all(NAME.fullmatch(name) for name in tools)
    assert list(tools) == list(world.tools())
    assert {
        "数据: скрипт.sh" in tool.about or "данные: скрипт.sh" in tool.about for tool in tools.values()
    } == {True}


def test_d05_more_than_128_tools(world: World) -> None:
    """65 skills with two scripts: a documented cut with a warning that names what was dropped, never in silence."""
    for number in range(65):
        world.skill(f"s{number:02}", scripts={"a.sh": HELLO, "b.sh": HELLO})
    turn = world.box().turn()
    assert len(turn.definitions("openai")) == 128
    assert turn.problems[-1].rule == "too-many-tools"
    assert turn.problems[-1].message.endswith("s64__a, s64__b")
    assert turn.box.turn(["s64__b"]).call("s64__b").text == "hi"


def test_d06_a_tool_without_parameters() -> None:
    """Always an object with properties and required, in every format."""

    class Nothing(Tool):
        """Does nothing."""

        def execute(self) -> str:
            return "x"

    turn = Toolbox([Nothing]).turn()
    want = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert turn.definitions("anthropic")[0]["input_schema"] == want
    assert turn.definitions("openai")[0]["function"]["parameters"] == want
    assert turn.definitions("openai-responses")[0]["parameters"] == want
    assert turn.definitions("gemini")[0]["functionDeclarations"][0]["parametersJsonSchema"] == want
    assert turn.definitions("mcp")[0]["inputSchema"] == want


def test_d07_wrong_arguments_start_nothing(world: World) -> None:
    """A wrong name, a wrong type, a null in a list: an error that names it, and no run; no arguments are none."""
    mark = world.file("mark")
    world.skill(
        "demo", front='fs_write: ["."]\n', scripts={"x.sh": '#!/bin/sh\necho ran >> mark\necho "$#"\n'}
    )
    tool = world.tools('sandbox: {fs_write: ["${workspace}"]}\n')["demo__x"]
    assert "there is no argument `arg`, did you mean `args`?" in tool.call({"arg": ["x"]}).text
    assert "`args[1]` must be string, not null" in tool.call({"args": [1, None]}).text
    assert "must be array" in tool.call({"args": {"a": 1}}).text
    assert mark.read_text() == ""
    assert tool.call({"args": "x"}).text == "1", "one text is a list of one: nothing is lost"
    assert tool.call(None).text == tool.call({}).text == "0"
    assert mark.read_text() == "ran\n" * 3


def test_d09_a_script_that_reads_finds_the_end(world: World) -> None:
    """`cat` without stdin ends at once, and the next call works."""
    world.skill("demo", scripts={"x.sh": "#!/bin/sh\ncat\necho end\n"})
    turn = world.box().turn()
    assert turn.call("demo__x").text == "end"
    assert turn.call("demo__x", {"stdin": "in "}).text == "in end"


def test_d10_a_failure_is_never_sent_as_success(world: World) -> None:
    """Exit 3, a timeout, a refusal, an unknown tool, a kill: each is marked as an error in every format."""
    front = "metadata: {skillrun: {scripts: {slow.sh: {timeout: 1}}}}\n"
    scripts = {
        "three.sh": "#!/bin/sh\nexit 3\n",
        "slow.sh": "#!/bin/sh\nsleep 20\n",
        "killed.sh": "#!/bin/sh\nkill -9 $$\n",
    }
    world.skill("demo", front=front, scripts=scripts)
    world.skill("refused", front="network: [a.example:443]\n", scripts={"x.sh": HELLO})
    turn = world.box(ceiling="sandbox: {network: [a.example:443]}\n").turn()
    names = ["demo__three", "demo__slow", "demo__killed", "refused__x", "nope"]
    outcomes = turn.answer_all([ToolCall(name, {}, str(place)) for place, name in enumerate(names)])
    assert all(one.is_error for one in outcomes)
    from skillrun.tools.formats import format_of

    assert all(block["is_error"] for block in format_of("anthropic").results(outcomes)[0]["content"])
    assert all(one["isError"] for one in format_of("mcp").results(outcomes))
    assert len({one.text for one in outcomes}) == 5


def test_script_names_have_no_traps_of_the_original() -> None:
    """Robotlab 1.5: `日本.sh`, `.hidden` and `---.sh` gave an empty name there."""
    identity = Identity("root", "folder", "script")
    for script in ("日本.sh", ".hidden", "---.sh"):
        name = script_name("demo", script, (), identity)
        assert NAME.fullmatch(name)
        assert name != "demo__"
    assert class_name("日本") == ""


def test_left_out_on_purpose() -> None:
    """3.E: no class is looked up by a name in data, and a toolbox has no second way to attach tools (docs/reference/tools.md)."""
    import skillrun.tools.script_tool as scripts
    from skillrun.tools import box

    for module in (box, scripts):
        source = inspect.getsource(module)
        assert not re.search(r"import_module|__import__|eval\(|getattr\(\w+, \w*name", source)
    assert not [name for name in dir(Toolbox) if name.startswith(("with_", "add", "register"))]


@pytest.mark.parametrize(
    ("value", "kind", "want"),
    [
        ("5", "integer", 5), (5.0, "integer", 5), ("-7", "integer", -7), ("2.5", "number", 2.5), ("true", "boolean", True),
        (5, "string", "5"), (True, "string", "true"), ("x", "array", ["x"]), ('["a"]', "array", ["a"]), ('{"a": 1}', "object", {"a": 1}),
    ],
)  # fmt: skip
def test_what_is_coerced(value: Any, kind: str, want: Any) -> None:
    """Only where nothing is lost: the value can be written back as it came."""

    class Echo(Tool):
        parameters = {"value": {"type": kind}}

        def execute(self, value: Any) -> Any:
            return {"value": value}

    assert Echo().call({"value": value}).structured == {"value": want}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("5.5", "integer"), (5.5, "integer"), ("05", "integer"), ("1e3", "integer"), ("--5", "integer"), ("٣", "integer"), (True, "integer"),
        ("yes", "boolean"), (1, "boolean"), ("True", "boolean"), ("nan", "number"), ("1_0", "number"), (["x"], "string"), ({}, "string"),
        ("x", "object"), (None, "string"), ("9" * 400, "integer"),
    ],
)  # fmt: skip
def test_what_is_not_coerced(value: Any, kind: str) -> None:
    """A guess would lose something, so it is an error."""

    class Echo(Tool):
        parameters = {"value": {"type": kind}}

        def execute(self, value: Any) -> Any:
            return {"value": value}

    outcome = Echo().call({"value": value})
    assert outcome.is_error, outcome.text
    json.dumps(outcome.text).encode()


def test_arguments_made_to_break_the_check() -> None:
    """Deep nesting, long names and values: a short error, at once; a skill's pattern is never matched."""

    class Echo(Tool):
        parameters = {
            "value": {"type": "string", "pattern": "^(a+)+$"},
            "data": {"type": "object", "required": False},
        }

        def execute(self, value: str, data: Any = None) -> Any:
            return "fine"

    assert Echo().call({"value": "a" * 40 + "!"}).text == "fine"
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert "nested deeper" in Echo().call({"value": "x", "data": deep}).text
    assert "no JSON" in Echo().call('{"value": ' * 50000).text
    assert len(Echo().call({"x" * 100000: 1, "value": ["y" * 100000]}).text) < 1000


def test_a_result_that_is_no_json_is_an_error() -> None:
    """Bytes, objects, deep and cyclic data, a mixture with files: told, never raised; NaN becomes a text."""
    loop: list[Any] = []
    loop.append(loop)
    from skillrun import Attachment, tool

    picture = Attachment("a.png", "image/png", b"x")
    for wrong in (b"x", object(), loop, [picture, 5]):
        outcome = tool(lambda wrong=wrong: wrong, name="t", parameters={}).call()
        assert outcome.text.startswith("Error (t): "), wrong
    assert tool(lambda: {"x": float("nan")}, name="t").call().text == '{"x": "nan"}'
    both = tool(lambda: ["one", picture, "two"], name="t").call()
    assert (both.text, both.attachments) == ("one\n\ntwo", (picture,))
    assert tool(lambda: picture, name="t").call().text == "[file: a.png]"
    assert tool(lambda: None, name="t").call().text == tool(lambda: "", name="t").call().text == "(no output)"


def test_a_tool_that_exits_does_not_end_the_program() -> None:
    """`sys.exit` in a tool is a failure of the tool."""
    from skillrun import tool

    assert tool(lambda: sys.exit("bye"), name="t").call().text == "Error (t): bye"
