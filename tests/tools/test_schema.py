"""Schemas of in-process tools: from type hints, name by name, or whole; and arguments as the types that the hints name."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest

from skillrun import Tool, Toolbox, ToolCall, UsageError, tool


class Colour(enum.Enum):
    """An enumeration of texts."""

    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    """An enumeration of numbers."""

    SMALL = 1
    LARGE = 2


@dataclass
class Point:
    """A dataclass with a default and one inside."""

    x: float
    y: float = 0.5
    colour: Colour = Colour.RED
    tags: list[str] = field(default_factory=list)


class Filter(TypedDict, total=False):
    """A map with known keys."""

    name: str
    size: int


seen: list[Any] = []


@tool
def everything(  # noqa: PLR0917 - it takes one of each
    text: str,
    number: int,
    point: Point,
    colour: Colour,
    size: Size,
    mode: Literal["a", "b"],
    path: Path,
    many: list[Point],
    either: int | str,
    pair: tuple[int, str],
    counts: dict[str, int],
    anything: Any,
    where: Optional[Filter] = None,  # noqa: UP045 - both spellings are read
    ratio: Annotated[float, "How much"] = 0.5,
    names: frozenset[str] = frozenset(),
    flag: bool = False,
) -> str:
    """Take everything.

    Args:
        text: The text that is taken,
            over two lines.
        number (int): A number.
    """
    seen[:] = [
        text,
        number,
        point,
        colour,
        size,
        mode,
        path,
        many,
        either,
        pair,
        counts,
        anything,
        where,
        ratio,
        names,
        flag,
    ]
    return "ok"


ARGUMENTS = {
    "text": "t", "number": 3, "point": {"x": 1, "colour": "blue"}, "colour": "red", "size": 2, "mode": "b", "path": "/a",
    "many": [{"x": 2.5, "y": 1, "tags": ["q"]}], "either": "e", "pair": [1, "two"], "counts": {"k": 1}, "anything": [None],
    "where": {"size": 4}, "ratio": 2, "names": ["n", "n"],
}  # fmt: skip


def test_hints_become_a_schema() -> None:
    """Plain types, enumerations, dataclasses, TypedDict, lists, unions, defaults and descriptions."""
    schema = everything.input_schema
    found = schema["properties"]
    point = {
        "type": "object",
        "properties": {
            "x": {"type": "number"},
            "y": {"type": "number", "default": 0.5},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["x"],
        "additionalProperties": False,
    }
    assert found["text"] == {"type": "string", "description": "The text that is taken, over two lines."}
    assert found["number"] == {"type": "integer", "description": "A number."}
    assert found["point"] == point
    assert found["many"] == {"type": "array", "items": point}
    assert found["colour"] == {"type": "string", "enum": ["red", "blue"]}
    assert found["size"] == {"type": "integer", "enum": [1, 2]}
    assert found["mode"] == {"type": "string", "enum": ["a", "b"]}
    assert found["path"] == {"type": "string"}
    assert found["either"] == {"type": ["integer", "string"]}
    assert found["pair"] == {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "minItems": 2,
        "maxItems": 2,
    }
    assert found["counts"] == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert found["anything"] == {}
    assert found["where"]["properties"] == {"name": {"type": "string"}, "size": {"type": "integer"}}
    assert found["where"]["required"] == []
    assert found["ratio"] == {"type": "number", "description": "How much", "default": 0.5}
    assert found["flag"] == {"type": "boolean", "default": False}
    assert schema["required"] == list(found)[:12]


def test_arguments_arrive_as_the_types_of_the_hints() -> None:
    """Enumeration members, dataclasses in lists, paths, sets and floats."""
    assert everything.call(ARGUMENTS).text == "ok"
    assert seen == [
        "t", 3, Point(1.0, 0.5, Colour.BLUE), Colour.RED, Size.LARGE, "b", Path("/a"), [Point(2.5, 1.0, Colour.RED, ["q"])],
        "e", (1, "two"), {"k": 1}, [None], {"size": 4}, 2.0, frozenset({"n"}), False,
    ]  # fmt: skip
    assert isinstance(seen[2].x, float)
    assert "point.colour" in everything.call(ARGUMENTS | {"point": {"x": 1, "colour": "green"}}).text
    assert everything("still a function", *seen[1:]) == "ok"


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        ("def f(a, /): pass", "positional only"),
        ("def f(a: bytes): pass", "can't give a bytes"),
        ("def f(a: Literal['x', 1]): pass", "must all be texts"),
        ("def f(a: NoSuchType): pass", "can't be read"),
        ("def f(é: str): pass", "can't be the name of a parameter"),
        ("def f(a: 'list[f]'): pass", "can't give a"),
    ],
)
def test_a_function_that_no_model_can_call_is_an_error(definition: str, told: str) -> None:
    """The error says what is wrong with it when the tool is made, not in the middle of a conversation."""
    names: dict[str, Any] = {"Literal": Literal}
    exec(definition, names)
    with pytest.raises(UsageError, match=told):
        tool(names["f"])


def test_schema_and_function_must_fit() -> None:
    """A parameter that the function does not take, and one that it needs and the schema does not require."""
    with pytest.raises(UsageError, match="takes no such keyword"):
        tool(lambda a: a, name="t", parameters={"a": {"type": "string"}, "b": {"type": "string"}})
    with pytest.raises(UsageError, match="does not require it"):
        tool(lambda a: a, name="t", parameters={"a": {"type": "string", "required": False}})

    class Open(Tool):
        parameters = {"a": {"type": "string"}}

        def execute(self, **given: Any) -> Any:
            return given

    assert Open().call({"a": "x"}).structured == {"a": "x"}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"name": "a b"}, "a name has letters"),
        ({"name": "1a"}, "a name has letters"),
        ({"name": "x" * 64}, "63 at most"),
        ({"name": "日本"}, "a name has letters"),
        ({"name": "x", "spill": 0}, "above 0"),
        ({"name": "x", "spill": True}, "above 0"),
        ({"name": "x", "colour": "red"}, "there is no setting `colour`"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], told: str) -> None:
    """Names that an API refuses, and settings that mean nothing, are errors when the tool is made."""
    with pytest.raises(UsageError, match=told):
        tool(lambda: 1, **settings)


def test_what_is_no_tool_is_refused() -> None:
    """A name, a number or a class of something else in the list of tools: an error that says what belongs there."""
    for wrong in ("get_weather", 5, dict):
        with pytest.raises(UsageError, match="is no tool"):
            Toolbox([wrong])


def test_all_calls_end_before_the_first_error_is_raised() -> None:
    """With `raise_on_error` among parallel calls, the others run to their end, and then it is raised."""
    ended: list[str] = []

    class Fails(Tool):
        raise_on_error = True

        def execute(self) -> None:
            raise RuntimeError("broken")

    class Works(Tool):
        def execute(self, n: int) -> str:
            ended.append(str(n))
            return "fine"

    turn = Toolbox([Fails, Works]).turn()
    with pytest.raises(RuntimeError, match="broken"):
        turn.answer_all([ToolCall("fails"), *(ToolCall("works", {"n": n}) for n in range(5))])
    assert sorted(ended) == list("01234")


def test_a_worker_that_dies_is_an_error_that_can_be_tried_again() -> None:
    """A process-safe tool that kills its process: the outcome is retryable, and the next call works."""
    with Toolbox([Dies], workers=1) as box:
        turn = box.turn()
        outcome = turn.call("dies", {"now": True})
        assert (outcome.text, outcome.retryable) == (
            "Error (dies): the process it ran in died (retryable)",
            True,
        )
        assert turn.call("dies", {"now": False}).text == "alive"


class Dies(Tool):
    """Ends its process when asked to."""

    process_safe = True

    def execute(self, now: bool) -> str:
        """Do so."""
        import os

        if now:
            os._exit(3)
        return "alive"
