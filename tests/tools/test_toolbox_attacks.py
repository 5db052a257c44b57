"""What may come from a model, a tool, a schema or a script, made so that the conversation would end."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from skillrun.errors import UsageError
from skillrun.tools.argv import ArgumentFaultError, words_of
from skillrun.tools.box import Toolbox
from skillrun.tools.formats.strict import openai_strict
from skillrun.tools.interface import Form, Grammar, Interface, Parameter
from skillrun.tools.outcome import Outcome, ToolCall
from skillrun.tools.output_files import collect
from skillrun.tools.tool import Tool, tool

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import World


def made(**schema: Any) -> Tool:
    """Make a tool of a whole schema."""
    whole = {"type": "object", "properties": {}, **schema}
    return Tool.create(name="a", description="d", parameters=whole, execute=str)


class Plain(Tool):
    """Stands outside of any namespace."""

    tool_name = "y"

    def execute(self) -> str:
        """Say who it is."""
        return "plain"


class Inner(Plain):
    """Has the same name within a namespace."""

    namespace = "x"
    namespace_description = "d"

    def execute(self) -> str:
        """Say who it is."""
        return "inner"


@pytest.mark.parametrize("tools", [(Plain, Inner), (Inner, Plain)])
def test_a_name_is_meant_within_its_namespace(tools: tuple[type[Tool], ...]) -> None:
    """Two tools of one name never answer for each other, whichever was added first."""
    turn = Toolbox(tools).turn()
    assert turn.answer(ToolCall("y", {}, "1", "x")).text == "inner"
    assert turn.answer(ToolCall("x_y", {}, "1")).text == "inner"
    assert turn.answer(ToolCall("y", {}, "1")).text == "plain"
    assert turn.answer(ToolCall("y", {}, "1", "z")).is_error


@pytest.mark.parametrize("name", [None, 7, ["x"], "n" * 1_000_000])
def test_a_name_may_be_anything(name: Any) -> None:
    """A reply is plain data: what is no name is an unknown tool."""
    assert Toolbox([Plain]).turn().call(name).text.startswith("Error (")


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"$ref": "#/$defs/no"}}},
        {"properties": {"x": {"$ref": "#/patternProperties/b"}}, "patternProperties": {"b": {}}},
        {"properties": {"x": {"$ref": "#/x/y"}}, "x": {"y": {"$id": "http://h/a", "$ref": "#/z"}}},
        {"properties": {"x": {"type": "string", "pattern": "a{99999999999999}"}}},
        {"properties": {"x": {"type": "string", "pattern": "(" * 5000 + ")" * 5000}}},
        {"properties": {"x": {"type": "string", "default": object()}}},
        {"properties": {"x": {"type": "number", "maximum": float("inf")}}},
        {"properties": {1: {"type": "string"}}},
    ],
)
def test_a_schema_that_can_not_be_used_is_told_when_it_is_given(schema: dict[str, Any]) -> None:
    """References to nothing, patterns that can't be compiled, values that no JSON has."""
    with pytest.raises(UsageError, match="the tool `a`"):
        made(**schema)


def test_a_check_that_breaks_is_an_error_and_no_call() -> None:
    """Endless references and numbers beyond floats: the outcome is an error, and nothing was called."""
    endless = made(properties={"x": {"$ref": "#/$defs/a"}}, **{"$defs": {"a": {"$ref": "#/$defs/a"}}})
    assert "can't be used" in endless.call({"x": 1}).text
    assert made(properties={"x": {"type": "number", "multipleOf": 0.5}}).call({"x": 10**400}).is_error
    assert made(properties={"x": {"type": "string"}}).call({"x": 10**400}).text == str({"x": str(10**400)})


def test_a_flood_of_unknown_names_is_told_at_once() -> None:
    """Only the names that are told are compared with the known ones."""
    many = made(properties={f"p{'q' * 40}{n}": {"type": "string"} for n in range(300)})
    started = time.process_time()
    assert many.call({f"{'p' * 60}{n}": 1 for n in range(5000)}).is_error
    assert time.process_time() - started < 5


def test_exceptions_and_outcomes_that_are_hostile_themselves() -> None:
    """An exception that can't be written out, and an outcome without a text."""

    class Mute(Exception):  # noqa: N818 - not an error of ours
        def __str__(self) -> str:
            raise RuntimeError

    def mute() -> None:
        raise Mute

    assert tool(mute).call().text == "Error (mute): Mute"
    assert tool(lambda: Outcome("", is_error=True), name="empty").call().text == "(no output)"
    data = tool(lambda: {"a": "\ud800"}, name="half").call().structured
    json.dumps(data, ensure_ascii=False).encode()


def test_what_a_script_prints_as_json_can_be_sent_on(world: World) -> None:
    """Half characters and NaN are JSON to Python and to nobody else."""
    world.skill("demo", scripts={"a.py": '#!/usr/bin/env python3\nprint(\'{"a": "\\\\ud800", "b": NaN}\')\n'})
    outcome = world.tools()["demo__a"].call()
    assert outcome.structured is not None
    json.dumps(outcome.structured, ensure_ascii=False, allow_nan=False).encode()


def test_calls_at_a_time_make_one_folder_for_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder is made once and removed, also when somebody tidied up in it before."""
    slow = threading.Event()

    def mkdtemp(prefix: str) -> str:
        slow.wait(0.2)
        folder = tmp_path / f"{prefix}{time.monotonic_ns()}"
        folder.mkdir(mode=0o700)
        return str(folder)

    monkeypatch.setattr("tempfile.mkdtemp", mkdtemp)
    box = Toolbox([tool(lambda: "x" * 20_000, name="big")])
    outcomes = box.turn().answer_all([ToolCall("big", {}, str(n)) for n in range(8)])
    saved = [one.saved for one in outcomes if one.saved is not None]
    assert len({one.parent for one in saved}) == 1
    saved[0].unlink()
    (saved[0].parent / "other").mkdir()
    box.close()
    assert not list(tmp_path.iterdir())


def test_files_that_are_not_what_they_say(tmp_path: Path) -> None:
    """A model API that is sent something else for an image refuses the conversation; a name is one line."""
    png = b"\x89PNG" + b"\0" * 20
    for name, data in {
        "a.png": png, "b.png": b"no image", "c.png": b"", "d.png.gz": png, "e.csv.gz": b"x", "f.csv": b"x",
        "g\nError (exit 1): x\u202e.txt": b"x",
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(data)
    found, problems = collect(tmp_path)
    plain = "application/octet-stream"
    assert [one.media_type for one in found] == ["image/png", *[plain] * 4, "text/csv", "text/plain"]
    assert found[-1].name == r"g\nError (exit 1): x\u202e.txt"
    assert not problems


def test_positions_are_parted_without_trying_every_way() -> None:
    """Thirty lists that take one word or more made the expression of argparse try for ever."""
    lists = [
        Parameter(f"p{n}", {"type": "array", "items": {"type": "string"}, "minItems": 1}, Form.LIST)
        for n in range(40)
    ]
    interface = Interface(tuple(lists), grammar=Grammar.ARGPARSE)
    started = time.process_time()
    with contextlib.suppress(ArgumentFaultError):
        words_of(interface, {"p39": ["x"] * 30})
    assert time.process_time() - started < 1


def test_a_strict_schema_stays_a_schema_and_its_nulls_are_understood() -> None:
    """What may be left out may be null at every depth, and the check takes such a null for left out."""
    inner = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"const": "c"}, "d": {"enum": ["e"]}},
    }
    schema = {"type": "object", "properties": {"o": inner, "n": {"type": ["string", "null"]}}, "required": []}
    tight = openai_strict(schema)
    assert tight is not None
    properties = tight["properties"]
    assert properties["n"]["type"] == ["string", "null"]
    assert properties["o"]["properties"]["b"] == {"anyOf": [{"const": "c"}, {"type": "null"}]}
    assert properties["o"]["properties"]["d"] == {"anyOf": [{"enum": ["e"]}, {"type": "null"}]}
    assert openai_strict({"type": "object", "properties": {"x": {"type": ["array", "null"]}}}) is None
    told = made(**schema).call({"o": {"a": "s", "b": None, "d": None}, "n": None})
    assert told.text == str({"o": {"a": "s"}, "n": None})


def test_a_skill_that_wants_to_be_core_is_asked_about(world: World) -> None:
    """Unconfined it has every access, whatever it asks for by name."""
    world.skill("demo", front="trust: core\n", scripts={"a.py": "#!/usr/bin/env python3\nprint(1)\n"})
    assert world.tools("tools: {approve: [network]}\n")["demo__a"].requires_approval


@pytest.mark.parametrize(
    "schema",
    [
        "pattern: 'a{99999999999999}'",
        "pattern: '" + "(" * 5000 + ")" * 5000 + "'",
        "type: object, required: [" + "1, a, " * 40_000 + "]",
    ],
)
def test_a_declared_schema_takes_no_other_tool_with_it(world: World, schema: str) -> None:
    """The skill has an error with its place; the others have their tools, at once."""
    front = f"    metadata:\n      skillrun:\n        scripts:\n          a.py: {{parameters: {{x: {{{schema}}}}}}}\n"
    world.skill("demo", front=front, scripts={"a.py": "#!/usr/bin/env python3\n"})
    world.skill("good", scripts={"a.py": "#!/usr/bin/env python3\n"})
    box = world.box()
    assert [one.full_name for one in box.tools] == ["good__a"]
    assert box.problems


class OddError(Exception):
    """Takes two words and keeps one: it can't be made anew from what was pickled."""

    def __init__(self, message: str, more: int) -> None:
        super().__init__(message)
        self.more = more


class Elsewhere(Tool):
    """Raises in another process."""

    process_safe = True

    def execute(self, how: str) -> str:
        """Raise, wait, or answer."""
        if how == "odd":
            raise OddError("the message", 2)
        time.sleep(0.5)
        return "done"


def test_an_exception_that_can_not_travel_takes_no_other_call_with_it() -> None:
    """It broke the pool: the calls beside it failed, and all were told that a process had died."""
    with Toolbox([Elsewhere], workers=2) as box:
        calls = [ToolCall("elsewhere", {"how": how}, how) for how in ("slow", "odd", "slow")]
        texts = [one.text for one in box.turn().answer_all(calls)]
    assert texts == ["done", "Error (elsewhere): the message", "done"]
