"""The seeds' examples of questions to a person (seed 001), and what else a question can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from talking import AskTeam, calls, one_waiting, outcomes, talk

from skillrun.conversation.entry import State
from skillrun.conversation.transitions import AlreadyDecidedError
from skillrun.errors import UsageError
from skillrun.tools.asking import MOST_QUESTIONS
from skillrun.tools.box import Toolbox
from skillrun.tools.task import Task
from skillrun.tools.tool import Tool, tool

if TYPE_CHECKING:
    from skillrun.conversation.store import Store


ASK = calls(("ask_team", {"question": "When do we ship?"}))


def test_ask_team_asks_one_question_after_the_other(store: Store) -> None:
    """Each question waits by itself; the code before it runs once more each time; the answers come back where they belong."""
    ran: list[str] = []
    conversation = talk([AskTeam(owner=ran)], [ASK, "noted"], store=store)
    conversation.ask("go")
    question = one_waiting(conversation).question
    assert question is not None
    assert (question.key, question.message) == ("q0", "When do we ship?")
    assert question.fields["required"] == ["answer"]
    with pytest.raises(UsageError, match="does not fit"):
        conversation.desk.answer("1.0", {"answer": 5, "more": 1})
    with pytest.raises(UsageError, match="does not fit"):
        conversation.desk.answer("1.0", {})
    conversation.desk.answer("1.0", {"answer": "Friday"}, question="q0")
    conversation.desk.answer("1.0", {"answer": "Friday"}, question="q0")  # a double click
    other = talk([AskTeam(owner=ran)], [ASK, "noted"], store=store)
    other.complete()
    question = one_waiting(other).question
    assert question is not None
    assert question.key == "q1"
    with pytest.raises(AlreadyDecidedError):
        other.desk.answer("1.0", {"answer": "Monday"}, question="q0")
    other.desk.answer("1.0", {"sure": True}, question="q1")
    assert other.complete().text == "noted"
    assert outcomes(other)[0].structured == {"answer": "Friday", "sure": True}
    assert ran == ["before"] * 3


def test_a_declined_question_is_an_answer_too(store: Store) -> None:
    """The tool is told that nobody answered, and says so to the model."""
    conversation = talk([AskTeam(owner=[])], [ASK, "noted"], store=store)
    conversation.ask("go")
    conversation.desk.decline("1.0")
    assert conversation.complete().text == "noted"
    assert outcomes(conversation)[0].text == '{"error": "Nobody answered"}'


def test_a_page_to_visit(store: Store) -> None:
    """A question may be a page; its answer has no fields. What is no web page, and fields beside it, are errors."""

    class Login(Tool):
        """Sends somebody to a page."""

        def execute(self, url: str, both: bool = False) -> str:
            """Ask."""
            more = {"x": {"type": "string"}} if both else {}
            return "in" if self.ask("Log in", url=url, **more).accepted else "out"

    reply = calls(
        ("login", {"url": "https://example.org/in"}),
        ("login", {"url": "javascript:alert(1)"}),
        ("login", {"url": "https://x.org", "both": True}),
    )
    conversation = talk([Login], [reply, "over"], store=store)
    conversation.ask("go")
    question = one_waiting(conversation).question
    assert question is not None
    assert question.url == "https://example.org/in"
    with pytest.raises(UsageError):
        conversation.desk.answer("1.0", {"password": "x"})
    conversation.desk.answer("1.0")
    conversation.complete()
    first, second, third = outcomes(conversation)
    assert first.text == "in"
    assert second.is_error
    assert third.is_error


def test_another_question_at_the_same_place_is_an_error_and_no_wrong_answer(store: Store) -> None:
    """A tool that asks something else when it is made again does not get the answer to the first question."""
    words = ["May I read?", "May I delete everything?"]

    @tool
    def shifty() -> str:
        """Ask something else each time."""
        return str(Tool().ask(words.pop(0), ok={"type": "boolean"})["ok"])

    conversation = talk([shifty], [calls(("shifty", {})), "over"], store=store)
    conversation.ask("go")
    conversation.desk.answer("1.0", {"ok": True})
    conversation.complete()
    assert "asks something else as `q0`" in outcomes(conversation)[0].text


def test_resume_may_ask_and_is_not_begun_anew(store: Store) -> None:
    """A question while a task is carried on: its answer goes to `resume`, and the job is not started a second time."""
    ran: list[str] = []

    class Careful(Tool):
        """Begins with a question, and ends with one."""

        def execute(self) -> Any:
            """Begin."""
            self.ask("Begin?")
            ran.append("begun")
            return Task(data={"n": 1})

        def resume(self, task: Task) -> Any:
            """End."""
            return f"{task.data['n']} {self.ask('End?', end={'type': 'boolean'})['end']}"

    conversation = talk([Careful], [calls(("careful", {})), "over"], store=store)
    conversation.ask("go")
    conversation.desk.answer("1.0")
    conversation.complete()
    assert one_waiting(conversation).state is State.PAUSED
    conversation.complete()
    question = one_waiting(conversation).question
    assert question is not None
    assert (question.key, question.message) == ("r0", "End?")
    conversation.desk.answer("1.0", {"end": True})
    assert conversation.complete().text == "over"
    assert outcomes(conversation)[0].text == "1 True"
    assert ran == ["begun"]


def test_outside_of_a_conversation_a_question_is_an_error() -> None:
    """Nobody can be asked when a tool is called by itself: the model reads an error, and nothing waits."""
    outcome = AskTeam(owner=[]).call(question="When?")
    assert outcome.is_error
    assert outcome.waiting is None
    assert "nobody can be asked here" in outcome.text
    assert Toolbox([AskTeam(owner=[])]).turn().call("ask_team", {"question": "When?"}).is_error


def test_a_tool_that_asks_without_end_is_ended(store: Store) -> None:
    """A person is asked a hundred questions for one call at most; then the call is an error and the model goes on."""

    class Child(Tool):
        """Asks why."""

        def execute(self) -> str:
            """Ask."""
            while True:
                self.ask("Why?", because={"type": "string"})

    conversation = talk([Child], [calls(("child", {})), "over"], store=store)
    conversation.ask("go")
    for _ in range(MOST_QUESTIONS):
        conversation.desk.answer(one_waiting(conversation).key, {"because": "so"})
        conversation.complete()
    assert conversation.complete().text == "over"
    assert f"more than {MOST_QUESTIONS} questions" in outcomes(conversation)[0].text


def test_a_key_is_for_one_question_of_a_call(store: Store) -> None:
    """Two questions with one key would share an answer: the second one is an error, and nobody is asked it."""

    class Twice(Tool):
        """Asks."""

        def execute(self) -> Any:
            """Ask twice."""
            return [self.ask("Sure?", key="sure", ok={"type": "boolean"})["ok"] for _ in range(2)]

    conversation = talk([Twice], [calls(("twice", {})), "over"], store=store)
    conversation.ask("go")
    conversation.desk.answer(one_waiting(conversation).key, {"ok": True})
    assert conversation.complete().text == "over"
    assert "asks `sure` twice" in outcomes(conversation)[0].text
