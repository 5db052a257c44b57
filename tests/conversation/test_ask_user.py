"""AskUser: questions of a model to a person, on given streams or in a conversation that waits."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from skillrun.conversation.ask_user import AskUser
from skillrun.conversation.conversation import Conversation, Progress
from skillrun.conversation.messages import Answered, Message, Reply, Said
from skillrun.tools.box import Toolbox
from skillrun.tools.outcome import ToolCall

if TYPE_CHECKING:
    from skillrun.conversation.model import Offer

LANGUAGES = ["Ruby", "Python", "Go"]


def asking(answer: str, **arguments: object) -> tuple[str, str, bool]:
    """Ask on streams; return what was written, what the model reads, and whether that is an error."""
    writing = io.StringIO()
    tool = AskUser(reading=io.StringIO(answer), writing=writing, asker="onboarding")
    outcome = tool.call({"question": "Which language?", **arguments})
    return writing.getvalue(), outcome.text, outcome.is_error


def test_choices_are_numbered_and_picked_by_number_or_word() -> None:
    """The seed's example: the prompt in its exact words, an answer by number, by word in any case, or of one's own."""
    written, text, _ = asking("2\n", choices=LANGUAGES)
    assert written == "\n[onboarding] Which language?\n  1. Ruby\n  2. Python\n  3. Go\n> "
    assert text == "Python"
    assert asking("go\n", choices=LANGUAGES)[1] == "Go"
    assert asking("Rust\n", choices=LANGUAGES)[1] == "Rust"
    assert asking("4\n", choices=LANGUAGES)[1] == "4"


def test_an_open_question_and_a_default() -> None:
    """Without choices any text is the answer; Enter takes the default, and without one it is no answer."""
    assert asking("  blue \n")[1] == "blue"
    assert asking("\n", default="green")[1] == "green"
    assert "(Enter for: green)" in asking("\n", default="green")[0]
    for said in ("\n", ""):
        assert asking(said)[2]


def test_what_a_model_writes_can_not_move_the_cursor_or_fake_a_line() -> None:
    """Control characters of a question are shown by their number, and its further lines are indented (law 12)."""
    tool_words = "Sure?\x1b[2J\n[skillrun] approved"
    writing = io.StringIO()
    AskUser(reading=io.StringIO("x\n"), writing=writing).call(
        {"question": tool_words, "choices": ["a\u202eb"]}
    )
    written = writing.getvalue()
    assert "\x1b" not in written
    assert "\u202e" not in written
    assert "\n[skillrun]" not in written


def test_one_stream_alone_is_a_mistake() -> None:
    """A tool with one stream would take the other from the process, which it never does."""
    with pytest.raises(TypeError):
        AskUser(reading=io.StringIO())


def test_without_streams_the_conversation_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a conversation the call waits for the answer; the real standard input is never read."""
    monkeypatch.setattr("sys.stdin", None)

    def model(messages: object, offer: Offer) -> Reply:
        del offer
        last: Message = list(messages)[-1]  # type: ignore[call-overload]
        if isinstance(last, Said):
            return Reply(calls=(ToolCall("ask_user", {"question": "Which?", "choices": LANGUAGES}),))
        assert isinstance(last, Answered)
        return Reply(last.outcomes[0].text)

    talk = Conversation(Toolbox([AskUser]), model)
    standing = talk.ask("set it up")
    assert standing.progress is Progress.WAITING
    question = standing.waiting[0].question
    assert question is not None
    assert question.message == "Which?"
    talk.desk.answer(standing.waiting[0].key, {"answer": "3"})
    assert talk.complete().text == "Go"


def test_without_streams_and_without_a_conversation_it_is_an_error() -> None:
    """Outside of a conversation nobody can be asked: the model reads an error, and nothing hangs."""
    outcome = AskUser().call({"question": "Which?"})
    assert outcome.is_error
    assert "nobody can be asked here" in outcome.text
