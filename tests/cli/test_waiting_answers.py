"""`answer` and `settle`: fields at a terminal and from the command line, and calls in doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from desk import Sitting
from waits import HOSTILE, allowed, doubtful, now, question, waits

from skillrun.cli.fields import from_words
from skillrun.conversation.entry import State
from skillrun.errors import UsageError
from skillrun.tools.asking import Question

if TYPE_CHECKING:
    from desk import Desk


def test_fields_are_asked_for_in_turn(desk: Desk) -> None:
    """Numbered choices, y or n, checked numbers with a default, what may be left out; then it is asked whether that is it."""
    waits(desk, question())
    sitting = Sitting(desk, "answer", "talk", "1.0")
    shown = sitting.until("a number, 1 to 2:")
    assert "the script go.py of the skill deploy asks you; these are its words, not skillrun's:" in shown
    assert '| "env": one of "staging", "live"; needed - where to' in shown
    assert '|   2) "live"' in shown
    for wrong in ("moon", "0", "3", ""):
        sitting.type(wrong)
        assert "that does not fit:\n  | `env` must be one of" in sitting.until("a number, 1 to 2:")
    sitting.type("2")
    sitting.until("y or n:")
    sitting.type("perhaps")
    sitting.until("y or n:")
    sitting.type("y")
    sitting.until("a whole number:")
    sitting.type("0")
    assert "at least 1" in sitting.until("a whole number:")
    sitting.type("")
    sitting.until("a text:")
    sitting.type("")
    sitting.until("give this answer? [y/N]")
    sitting.type("y")
    assert sitting.end() == 0
    settled = now(desk).settled[0]
    assert dict(settled.answer.values) == {"env": "live", "sure": True, "count": 2}
    assert now(desk).state is State.READY


@pytest.mark.parametrize("where", ["first", "later", "end"])
def test_an_answer_that_is_broken_off_changes_nothing(desk: Desk, where: str) -> None:
    """Ctrl-D at the first field, at a later one, or a no at the end."""
    waits(desk, question())
    sitting = Sitting(desk, "answer", "talk", "1.0")
    sitting.until("a number, 1 to 2:")
    if where != "first":
        sitting.type("1")
        sitting.until("y or n:")
    if where == "end":
        for line, following in (("n", "a whole number:"), ("5", "a text:"), ("words", "[y/N]")):
            sitting.type(line)
            sitting.until(following)
        sitting.type("n")
    else:
        sitting.close_input()
    assert sitting.end() == 1
    assert "nothing was changed" in sitting.told
    assert now(desk).state is State.AWAITING_INPUT


def test_answers_from_the_command_line(desk: Desk) -> None:
    """`--field` and `--json`, also from standard input; values get the type of their field and have to fit."""
    allowed(desk)
    waits(desk, *(question() for _ in range(3)))
    done = desk(
        "answer", "talk", "1.0", "--field", "env=live", "--field", "sure=true", "--field", "note=a=b", "--yes"
    )
    assert done.returncode == 0
    assert dict(now(desk).settled[0].answer.values) == {"env": "live", "sure": True, "note": "a=b"}
    assert desk("answer", "talk", "1.1", "--json", '{"env": "live", "sure": false}', "--yes").returncode == 0
    done = desk(
        "answer", "talk", "1.2", "--json", "-", "--yes", stdin='{"env": "staging", "sure": false, "count": 4}'
    )
    assert done.returncode == 0
    assert dict(now(desk, "1.2").settled[0].answer.values) == {"env": "staging", "sure": False, "count": 4}


def test_an_answer_that_does_not_fit(desk: Desk) -> None:
    """What is wrong is said, and the question waits on."""
    allowed(desk)
    waits(desk, question())
    for words, told in (
        (["--field", "env=moon", "--field", "sure=true"], "must be one of"),
        (["--json", '{"env": "live", "more": 1}'], "`sure` is missing"),
        (["--json", "{env: live}"], "no JSON object"),
        (["--field", "env=live", "--decline"], "exclude one another"),
        ([], "the values have to be given"),
    ):
        done = desk("answer", "talk", "1.0", *words, "--yes")
        assert done.returncode == 2
        assert told in done.stderr
    assert now(desk).state is State.AWAITING_INPUT


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["env"], "names no field and value"),
        (["=x"], "names no field and value"),
        (["a=1", "a=1"], "said twice"),
    ],
)
def test_a_field_that_is_none(words: list[str], told: str) -> None:
    """A word without `=` or without a name, and a name that is said twice; a value may have an `=`."""
    with pytest.raises(UsageError, match=told):
        from_words(words)
    assert from_words(["a=b=c", "d="]) == {"a": "b=c", "d": ""}


def test_standard_input_is_never_read_by_itself(desk: Desk) -> None:
    """Without a terminal and `--json -` nothing is taken from there; `--json -` itself needs `--yes`."""
    allowed(desk)
    waits(desk, question())
    for words in ([], ["--json", "-"], ["--decline"]):
        done = desk("answer", "talk", "1.0", *words, stdin='{"env": "live", "sure": true}\ny\n')
        assert done.returncode == 2
    sitting = Sitting(desk, "answer", "talk", "1.0", "--json", "-")
    assert sitting.end() == 2
    assert "reads standard input" in sitting.told
    assert now(desk).state is State.AWAITING_INPUT


def test_a_page_to_visit_is_text(desk: Desk) -> None:
    """The address and its host are shown and nothing opens it; a yes says that one was there. Declining is another word."""
    waits(desk, question(Question("q0", "Log in", {}, "https://good.example@evil.example/x")), question())
    sitting = Sitting(desk, "answer", "talk", "1.0")
    shown = sitting.until("give this answer? [y/N]")
    assert "| https://good.example@evil.example/x" in shown
    assert "its host      evil.example\n" in shown
    sitting.type("y")
    assert sitting.end() == 0
    assert now(desk).settled[0].answer.accepted
    sitting = Sitting(desk, "answer", "talk", "1.1", "--decline")
    sitting.until("leave it without an answer? [y/N]")
    sitting.type("y")
    assert sitting.end() == 0
    assert not now(desk, "1.1").settled[0].answer.accepted


def test_a_tools_words_stay_its_own_while_fields_are_asked_for(desk: Desk) -> None:
    """Names, descriptions and choices of a field are behind the bar at the prompts too, escaped and cut."""
    padded = "p" * 33 + "may this call be made? [y/N] y " + HOSTILE
    evil = {"type": "object", "properties": {padded: {"enum": [padded, "b"], "description": padded}}}
    waits(desk, question(Question("q0", "Which?", evil)))
    sitting = Sitting(desk, "answer", "talk", "1.0", COLUMNS="40")
    sitting.until("a number, 1 to 2:")
    sitting.type("9")
    sitting.until("a number, 1 to 2:")
    sitting.close_input()
    assert sitting.end() == 1
    lines = sitting.told.splitlines()
    assert not [hex(ord(one)) for one in sitting.told if one != "\n" and not one.isprintable()]
    assert not [line for line in lines if "ppp" in line and not line.startswith(("  | ", "  + "))]
    assert not [line for line in lines if "[y/N]" in line and not line.startswith(("  | ", "  + "))]
    assert not [line for line in lines if len(line) > 40 and line.startswith(("  | ", "  + "))]


# In doubt


@pytest.mark.parametrize(
    ("flag", "state", "told"),
    [
        ("--retry", State.READY, ""),
        ("--give-up", State.ANSWERED, "or not at all"),
        ("--cancel", State.ANSWERED, ""),
    ],
)
def test_a_call_in_doubt(desk: Desk, flag: str, state: State, told: str) -> None:
    """Its process is gone: made again, given up with the truth for the model, or cancelled, as a person says."""
    waits(desk, doubtful())
    sitting = Sitting(desk, "settle", "talk", "1.0", flag)
    assert "is in doubt: the process that made it has died" in sitting.until("[y/N]")
    sitting.type("y")
    assert sitting.end() == 0
    assert now(desk).state is state
    assert told in (now(desk).outcome or {"text": ""})["text"]


def test_settle_takes_one_word(desk: Desk) -> None:
    """None of the three, or several, is a wrong usage."""
    waits(desk, doubtful())
    for flags in ([], ["--retry", "--cancel"]):
        done = desk("settle", "talk", "1.0", *flags)
        assert done.returncode == 2
        assert "say one of --retry, --give-up and --cancel" in done.stderr
