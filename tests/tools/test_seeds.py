"""The examples of the seed documents, one by one, with the output that they document.

Where the original's behaviour is a footgun, the test says what holds instead (facts/robotlab 3.E).
"""

from __future__ import annotations

import datetime as dt
import logging
from typing import Any

import pytest

from skillrun import NONE, Tool, Toolbox, ToolCall, ToolError, UsageError, tool

NOW = "2026-11-30 12:00:00 +0000"


class GetWeather(Tool):
    """The first example: explicit parameters, one optional."""

    description = "Get current weather for a location"
    parameters = {
        "location": {"type": "string", "description": "City name or zip code"},
        "unit": {"type": "string", "description": "Temperature unit", "required": False},
    }

    def execute(self, location: str, unit: str = "celsius") -> str:
        """Answer."""
        return f"{location}: 20 {unit}"


class AdjustEnergy(Tool):
    """A tool that changes its owner."""

    description = "Adjust the robot's creativity level"
    parameters = {"level": {"type": "number", "description": "Temperature from 0.0 to 1.0"}}

    def execute(self, level: float) -> str:
        """Answer."""
        self.owner.temperature = level
        return f"Temperature adjusted to {level}"


class CalculatorTool(Tool):
    """Adds."""

    def execute(self, a: int, b: int) -> int:
        """Answer."""
        return a + b


class CurrentTime(Tool):
    """Returns the current date, time, and time zone."""

    def execute(self) -> str:
        """Answer."""
        return NOW


class CustomerLookup(Tool):
    """Finds a customer by email."""

    namespace = "crm"
    namespace_description = "Customer records and orders"

    def execute(self, email: str) -> dict[str, str]:
        """Answer."""
        return {"email": email}


class FetchResource(Tool):
    """Fetch a resource from an external API."""

    def execute(self, id: str) -> str:
        """Fail as the resource says."""
        if id == "503":
            raise ToolError("upstream 503", retryable=True)
        if id == "bad":
            raise ToolError("bad input")
        raise ConnectionError("connection refused")


class CriticalPayment(Tool):
    """Process a payment."""

    raise_on_error = True

    def execute(self, amount: float) -> None:
        """Fail."""
        raise RuntimeError("the gateway is down")


class Fibonacci(Tool):
    """Compute the nth Fibonacci number."""

    process_safe = True

    def execute(self, n: int) -> dict[str, int]:
        """Answer, with the process it ran in."""
        import os

        a, b = 0, 1
        for _ in range(n):
            a, b = b, a + b
        return {"value": a, "process": os.getpid()}


def offered(turn: Any) -> list[str]:
    """Return the names of a turn."""
    return [one.full_name for one in turn.listed]


def test_a_subclass_with_parameters() -> None:
    """The guide's first tool: name, description, one required and one optional parameter."""
    made = GetWeather()
    assert (made.name, made.about) == ("get_weather", "Get current weather for a location")
    assert made.input_schema["required"] == ["location"]
    assert made.input_schema["properties"]["unit"] == {"type": "string", "description": "Temperature unit"}
    assert made.call({"location": "Berlin"}).text == "Berlin: 20 celsius"


def test_a_tool_reaches_its_owner() -> None:
    """`owner=` is what `robot:` is in the guide."""

    class Robot:
        temperature = 0.7

    robot = Robot()
    assert AdjustEnergy(owner=robot).call({"level": 0.2}).text == "Temperature adjusted to 0.2"
    assert robot.temperature == 0.2


def test_create_makes_a_tool_of_a_function() -> None:
    """`Tool.create` with a name, a description and a function of one map."""
    made = Tool.create(name="get_time", description="Get the current time", execute=lambda _: NOW)
    assert made.input_schema["properties"] == {}
    assert made.call().text == NOW


def test_create_keeps_the_whole_schema_and_checks_it() -> None:
    """The original keeps type, description and required only, and never checks them (robotlab 25)."""
    schema = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Search query"},
            "limit": {"type": "integer", "description": "Max results", "default": 10, "maximum": 50},
            "order": {"enum": ["asc", "desc"]},
            "where": {
                "type": "object",
                "properties": {"tags": {"type": "array", "items": {"type": "string"}}},
            },
        },
        "required": ["query"],
    }
    made = Tool.create(
        name="search", description="Search", parameters=schema, execute=lambda args: sorted(args)
    )
    assert made.input_schema["properties"] == schema["properties"]
    assert made.call({"query": "x", "limit": 3}).structured == ["limit", "query"]
    assert made.call({"limit": 99, "order": "up", "extra": 1}).text == (
        "Error (search): invalid arguments: there is no argument `extra`; it takes `query`, `limit`, `order`, `where`; "
        '`query` is missing; `limit` must be at most 50, not 99; `order` must be one of "asc", "desc", not "up"'
    )


@pytest.mark.parametrize(
    ("kind", "value"),
    [("string", "Ada"), ("integer", 3), ("number", 2.5), ("boolean", True), ("array", ["a", "b"])],
)
def test_parameter_types(kind: str, value: Any) -> None:
    """Each type of the guide arrives as it was sent; an array holds texts unless it says otherwise."""

    class Echo(Tool):
        parameters = {"value": {"type": kind, "description": "A value"}}

        def execute(self, value: Any) -> Any:
            return {"value": value}

    assert Echo().call({"value": value}).structured == {"value": value}
    if kind == "array":
        assert Echo().input_schema["properties"]["value"]["items"] == {"type": "string"}


def test_a_parameter_can_have_an_enum() -> None:
    """The guide says to write the values into the description, since `param` has no `enum:`; here it has."""

    class FindOrders(Tool):
        parameters = {"status": {"type": "string", "enum": ["pending", "active", "completed"]}}

        def execute(self, status: str) -> str:
            return status

    assert FindOrders().call({"status": "active"}).text == "active"
    outcome = FindOrders().call({"status": "gone"})
    assert outcome.is_error
    assert 'must be one of "pending", "active", "completed"' in outcome.text


def test_required_unless_it_says_otherwise() -> None:
    """Parameters are required by default; `required: False` makes one optional."""

    class Search(Tool):
        parameters = {"query": {"type": "string"}, "limit": {"type": "integer", "required": False}}

        def execute(self, query: str, limit: int = 10) -> str:
            return f"{query} {limit}"

    assert Search().input_schema["required"] == ["query"]
    assert Search().call({"query": "x"}).text == "x 10"


def test_structured_values_lists_and_texts() -> None:
    """Maps and lists are told as JSON, dates as ISO 8601, a text as it is."""
    joined = dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)
    user = tool(lambda: {"id": 1, "created_at": joined}, name="user")
    assert user.call().structured == {"id": 1, "created_at": "2026-01-02T00:00:00+00:00"}
    assert tool(lambda: [{"id": 1, "title": "ä"}], name="hits").call().text == '[{"id": 1, "title": "ä"}]'
    assert CurrentTime().call().text == NOW


def test_a_recoverable_failure_is_returned() -> None:
    """`{error: …}` goes to the model as it is, and is marked as a failure."""
    find = tool(lambda: {"success": False, "error": "Resource not found", "id": "7"}, name="find")
    outcome = find.call()
    assert (outcome.text, outcome.is_error) == (
        '{"success": false, "error": "Resource not found", "id": "7"}',
        True,
    )
    assert not tool(lambda: {"error": None, "n": 1}, name="fine").call().is_error


def test_errors_become_text_and_are_all_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The texts are the guide's; the log has the ToolError too, which the original leaves out (3.E)."""
    with caplog.at_level(logging.WARNING):
        assert FetchResource().call({"id": "missing"}).text == "Error (fetch_resource): connection refused"
        assert FetchResource().call({"id": "503"}).text == "Error (fetch_resource): upstream 503 (retryable)"
        assert FetchResource().call({"id": "bad"}).text == "Error (fetch_resource): bad input"
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "Tool 'fetch_resource' error: ConnectionError: connection refused",
        "Tool 'fetch_resource' error: ToolError: upstream 503",
        "Tool 'fetch_resource' error: ToolError: bad input",
    ]


def test_a_critical_tool_raises_and_so_does_its_subclass() -> None:
    """`raise_on_error` is inherited, as every setting is; in the original it silently is not (3.E)."""

    class ChargeCard(CriticalPayment):
        """Charge a card."""

    for kind in (CriticalPayment, ChargeCard):
        with pytest.raises(RuntimeError, match="gateway"):
            kind().call({"amount": 1})

    class Calm(CriticalPayment):
        raise_on_error = False

    assert Calm().call({"amount": 1}).text == "Error (calm): the gateway is down"


def test_process_safe_tools_run_in_other_processes() -> None:
    """A marked class runs elsewhere, a tool made by `create` where it is called, as in the guide's three conditions."""
    import os

    made = Tool.create(name="here", execute=lambda _: {"process": os.getpid()}, process_safe=True)
    with Toolbox([Fibonacci, made], workers=1) as box:
        outcome = box.turn().call("fibonacci", {"n": 10})
        assert outcome.structured["value"] == 55
        assert outcome.structured["process"] != os.getpid()
        assert box.turn().call("here").structured["process"] == os.getpid()


def test_callbacks_get_the_call_and_the_result() -> None:
    """`on_result` gets both; the original gives the result only (robotlab 32)."""
    heard: list[Any] = []
    box = Toolbox(
        [GetWeather],
        on_call=[lambda call: heard.append(call.name)],
        on_result=[lambda call, result: heard.append((call.id, result.text))],
    )
    box.turn().call("get_weather", {"location": "Tokyo"}, call_id="c1")
    assert heard == ["get_weather", ("c1", "Tokyo: 20 celsius")]


def test_classes_and_instances_answer_to_one_name() -> None:
    """Attached as a class or as an instance, a tool has one name, so one allow-list fits both (3.E)."""
    for given in (CalculatorTool, CalculatorTool()):
        assert offered(Toolbox([GetWeather, given]).turn(["calculator"])) == ["calculator"]


def test_the_choices_of_a_turn() -> None:
    """Inherit, none, an empty list and names; None is what the level above offers, never more (3.E)."""
    box = Toolbox([GetWeather, CalculatorTool])
    assert offered(box.turn()) == ["get_weather", "calculator"]
    assert offered(box.turn(NONE)) == offered(box.turn([])) == []
    assert offered(box.turn(["calculator"])) == ["calculator"]
    narrowed = box.turn(["get_weather"])
    assert offered(narrowed.narrow(None)) == offered(narrowed.narrow()) == ["get_weather"]


def test_giving_a_tool_where_a_name_belongs_is_an_error() -> None:
    """As in the guide: instances and classes are refused, and the error says where they go."""
    box = Toolbox([GetWeather])
    for wrong in (GetWeather(), GetWeather):
        with pytest.raises(UsageError, match="GetWeather"):
            box.turn([wrong])
    with pytest.raises(UsageError, match="no tool `get_wether`") as caught:
        box.turn(["get_wether"])
    assert "get_weather" in str(caught.value.problem.help)


def test_a_turn_replaces_the_one_before() -> None:
    """A later turn with nothing offers nothing, whatever was offered before."""
    box = Toolbox([GetWeather, CalculatorTool])
    assert offered(box.turn(["calculator"])) == ["calculator"]
    assert offered(box.turn(NONE)) == []
    assert offered(box.turn()) == ["get_weather", "calculator"]


def many(count: int) -> list[Tool]:
    """Make tools by number."""
    return [Tool.create(name=f"t{number:03}", execute=lambda _: "x") for number in range(count)]


def test_the_cap_names_what_it_drops(caplog: pytest.LogCaptureFixture) -> None:
    """150 tools become 128 with the guide's warning, which also says which were dropped (D-05)."""
    turn = Toolbox(many(150), name="robot").turn()
    assert len(turn.tools) == 128
    message = "[robot] tool list (150) exceeds max_tools (128); sending 128, dropping 22: t128, t129,"
    assert caplog.records[-1].getMessage().startswith(message)
    assert turn.problems[-1].message.startswith(message)
    assert len(Toolbox(many(150), max_tools=50).turn().tools) == 50


@pytest.mark.parametrize("wrong", [0, -1, True, 2.5, "50"])
def test_a_cap_that_is_no_number_is_an_error(wrong: Any) -> None:
    """0 and below mean 128 in the original, where people expect no limit (3.E)."""
    with pytest.raises(UsageError, match="above 0"):
        Toolbox([], max_tools=wrong)


def test_names_come_from_classes() -> None:
    """The guide's derivations, and a name that is set."""

    class WeatherLookup(Tool):
        pass

    class WeatherTool(Tool):
        pass

    class Ünïcode(Tool):
        pass

    class Named(Tool):
        tool_name = "Weather"

    class HTTPServerTool(Tool):
        pass

    found = [kind.model_name() for kind in (WeatherLookup, WeatherTool, Ünïcode, Named, HTTPServerTool)]
    assert found == ["weather_lookup", "weather", "unicode", "Weather", "http_server"]


def test_an_unknown_tool_is_answered_with_similar_names() -> None:
    """The conversation continues with an error that names up to three."""
    box = Toolbox([GetWeather, CalculatorTool, *many(2)])
    outcome = box.turn().call("get_weathr")
    assert outcome.is_error
    assert outcome.text == "Error (get_weathr): there is no tool `get_weathr`; similar ones are `get_weather`"
    assert Toolbox([GetWeather]).turn().call("zzz").text == "Error (zzz): there is no tool `zzz`"


def test_namespaces_join_the_name_and_need_a_description() -> None:
    """`crm_customer_lookup` outside, `customer_lookup` within; two of one name are an error; None removes it."""
    made = CustomerLookup()
    assert (made.full_name, made.name, made.namespace) == ("crm_customer_lookup", "customer_lookup", "crm")
    assert Toolbox([made]).turn().call("customer_lookup", {"email": "a@b"}, namespace="crm").structured == {
        "email": "a@b"
    }
    with pytest.raises(UsageError, match="two tools are called `crm_customer_lookup`"):
        Toolbox([CustomerLookup, CustomerLookup])

    class Plain(CustomerLookup):
        namespace = None

    assert Plain().full_name == "plain"
    with pytest.raises(UsageError, match="needs a description"):
        Toolbox(
            [
                tool(lambda: 1, name="x", namespace="a", namespace_description="b"),
                type("Y", (Tool,), {"namespace": "c"}),
            ]
        )


@pytest.mark.parametrize("name", ["computer", "browser"])
def test_reserved_namespaces_are_errors(name: str) -> None:
    """OpenAI drops the functions in them, so nobody may take them."""
    with pytest.raises(UsageError, match="taken by model providers"):
        tool(lambda: 1, name="x", namespace=name, namespace_description="d")


def test_parameters_are_read_from_the_signature() -> None:
    """Keywords with and without defaults; without hints they are texts, and `def execute(self)` takes nothing."""

    class Weather(Tool):
        def execute(self, latitude, longitude, units="metric"):  # noqa: ANN001, ANN202
            return f"{latitude} {longitude} {units}"

    schema = Weather().input_schema
    assert schema["properties"] == {
        "latitude": {"type": "string"}, "longitude": {"type": "string"}, "units": {"type": "string", "default": "metric"},
    }  # fmt: skip
    assert schema["required"] == ["latitude", "longitude"]
    assert CurrentTime().input_schema == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def test_the_call_is_given_by_a_reserved_keyword() -> None:
    """`tool_call` is filled in, is never in the schema, and a model can't send it."""
    seen: list[Any] = []

    class Search(Tool):
        def execute(self, query: str, tool_call: ToolCall | None = None) -> str:
            seen.append(tool_call)
            return query

    assert list(Search().input_schema["properties"]) == ["query"]
    Toolbox([Search]).turn().call("search", {"query": "x"}, call_id="id1")
    assert seen[0].id == "id1"
    assert Search().call({"query": "x", "tool_call": {}}).is_error
    with pytest.raises(UsageError, match="tool_call"):
        Tool.create(name="x", parameters={"type": "object", "properties": {"tool_call": {}}}, execute=print)


def test_progress_is_told_and_lost_when_nobody_listens() -> None:
    """The guide's `progress`, with a value and a total."""

    class ReadPages(Tool):
        def execute(self, pages: int) -> str:
            for page in range(pages):
                self.progress(f"Reading page {page + 1} of {pages}", value=page + 1, total=pages)
            return "done"

    heard: list[Any] = []
    box = Toolbox(
        [ReadPages],
        on_progress=[
            lambda call, progress: heard.append((call.id, progress.message, progress.value, progress.total))
        ],
    )
    box.turn().call("read_pages", {"pages": 2}, call_id="c")
    assert heard == [("c", "Reading page 1 of 2", 1, 2), ("c", "Reading page 2 of 2", 2, 2)]
    assert ReadPages().call({"pages": 1}).text == "done"


def test_provider_options_are_merged_as_they_stand() -> None:
    """`cache_control` of the guide, for all providers or under one provider's name; None is an error."""

    class Cached(Tool):
        provider_options = {"anthropic": {"cache_control": {"type": "ephemeral"}}, "title": "T"}

        def execute(self) -> str:
            return "x"

    turn = Toolbox([Cached]).turn()
    assert turn.definitions("anthropic")[0]["cache_control"] == {"type": "ephemeral"}
    assert turn.definitions("anthropic")[0]["title"] == "T"
    assert "cache_control" not in turn.definitions("openai")[0]["function"]
    with pytest.raises(UsageError, match="provider_options"):
        tool(lambda: 1, name="x", provider_options=None)


def test_long_results_are_saved(tmp_path: Any) -> None:
    """Over 10,000 characters: a file, its start and its path; a tool's own number; never with False."""
    text = "line\n" * 4000
    box = Toolbox([tool(lambda: text, name="long"), tool(lambda: text, name="whole", spill=False), tool(lambda: "x" * 60, name="own", spill=50)],
                  files=tmp_path)  # fmt: skip
    turn = box.turn()
    outcome = turn.call("long")
    assert outcome.saved is not None
    assert outcome.saved.read_text() == text
    assert outcome.saved.stat().st_mode & 0o077 == 0
    assert outcome.text.startswith(text[:1000])
    assert outcome.text.endswith(f"[… 20000 characters in all; the whole result is in {outcome.saved}]")
    assert turn.call("whole").text == text
    assert turn.call("own").saved is not None
    assert turn.call("own").saved != turn.call("own").saved


def test_an_execute_that_is_missing_is_told() -> None:
    """The base class raises, and a call of it says so instead of ending the conversation."""

    class Nothing(Tool):
        """Does nothing."""

    assert Nothing().call().text == "Error (nothing): Nothing has no `execute`"


def test_invalid_arguments_are_told_all_at_once_and_nothing_runs() -> None:
    """Names, types and values in one message; the original checks names only, one at a time (robotlab 6)."""
    ran: list[int] = []

    class Add(Tool):
        def execute(self, a: int, b: int, sign: bool = False) -> int:
            ran.append(1)
            return a + b

    outcome = Add().call({"b": "three", "c": 1, "sign": "maybe"})
    assert outcome.text == (
        "Error (add): invalid arguments: there is no argument `c`; it takes `a`, `b`, `sign`; `a` is missing; "
        '`b` must be integer, not "three"; `sign` must be boolean, not "maybe"'
    )
    assert ran == []
    assert Add().call("not json").text == "Error (add): invalid arguments: they are no JSON"
    assert Add().call([1]).text == "Error (add): invalid arguments: they must be a JSON object"
    assert Add().call('{"a": 1, "b": 2}').text == "3"
