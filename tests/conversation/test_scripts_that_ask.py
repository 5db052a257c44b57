"""Scripts that ask a person, and scripts in the background: real runs, confined."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from talking import Script, calls, one_waiting, outcomes

from skillrun.conversation.conversation import Conversation, Progress
from skillrun.conversation.entry import State
from skillrun.conversation.sqlite import SqliteStore
from skillrun.conversation.store import MemoryStore, Store
from skillrun.tools.box import Toolbox
from skillrun.tools.task import Status

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Workplace

ASKING = """
    import json, os, sys
    answers = json.loads(os.environ.get("SKILLRUN_ANSWERS", "{}"))
    def ask(name, words, **fields):
        if name not in answers:
            os.write(int(os.environ["SKILLRUN_EVENTS_FD"]), json.dumps({"ask": words, "name": name, "fields": fields}).encode() + b"\\n")
            sys.exit(0)
        return answers[name]
"""


def asking(
    workplace: Workplace, script: str, *, store: Store | None = None, background: bool = False
) -> Conversation:
    """Return a conversation that calls a script."""
    workplace.skill("demo", ASKING + script, front='fs_read: ["."]\n')
    box = workplace.box("sandbox: {fs_read: ['${workspace}'], fs_write: ['${workspace}'], timeout: 40}")
    box.tools[0].background = background  # type: ignore[attr-defined]
    model = Script([calls(("demo__act", {})), "over"])
    return Conversation(box, model, store=store if store is not None else MemoryStore(), name="c")


@pytest.mark.parametrize("background", [False, True])
def test_a_script_asks_several_questions_and_reads_the_answers(
    workplace: Workplace, background: bool
) -> None:
    """It asks on its events pipe, ends, and is run again with the answers; one was declined, and it sees that too."""
    conversation = asking(
        workplace,
        """
    place = ask("place", "Where to?", city={"type": "string", "required": True})
    sure = ask("sure", "Sure?", yes={"type": "boolean"})
    print(place["values"]["city"], place["accepted"], sure["accepted"], sure["values"])
    """,
        background=background,
    )
    conversation.ask("go")
    waited(conversation, State.AWAITING_INPUT)
    question = one_waiting(conversation).question
    assert question is not None
    assert (question.key, question.message) == ("place", "Where to?")
    assert question.fields["properties"] == {"city": {"type": "string"}}
    conversation.desk.answer("1.0", {"city": 'O"slo\n$(id) \u00e6'}, question="place")
    conversation.complete()
    waited(conversation, State.AWAITING_INPUT)
    conversation.desk.decline("1.0", question="sure")
    conversation.complete()
    while conversation.complete().progress is Progress.WAITING:
        time.sleep(0.02)
    assert outcomes(conversation)[0].text == 'O"slo\n$(id) \u00e6 True False {}'


def waited(conversation: Conversation, state: State) -> None:
    """Carry on until the one call is in a state."""
    until = time.monotonic() + 20
    while one_waiting(conversation).state is not state:
        assert time.monotonic() < until
        conversation.complete()
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"ask": "x", "fields": [1]}', "fields of a question are no map"),
        ('{"ask": "x", "fields": {"a": 1}}', "is no map"),
        ('{"ask": "x", "fields": {"a": {"type": "sausage"}}}', "no JSON Schema"),
        ('{"ask": "x", "name": 7}', "name of a question is no text"),
        ('{"ask": "x", "name": " "}', "name of a question is no text"),
        ('{"ask": "x", "url": "file:///etc/passwd"}', "no http or https address"),
        ('{"ask": "x", "url": 7}', "no http or https address"),
        ('{"ask": "x", "url": "https://x.org", "fields": {"a": {}}}', "not both"),
    ],
)
def test_a_question_that_can_not_be_asked_is_an_error(workplace: Workplace, line: str, told: str) -> None:
    """A malformed question is told to the model as an error of the call; nobody is asked something half."""
    conversation = asking(
        workplace, f"\n    os.write(int(os.environ['SKILLRUN_EVENTS_FD']), {line!r}.encode() + b'\\n')"
    )
    assert conversation.ask("go").text == "over"
    assert told in outcomes(conversation)[0].text


def test_what_is_no_question_is_none(workplace: Workplace) -> None:
    """Noise on the pipe, and `ask` that is no text, leave the call as it is: its output is the result."""
    noise = [b"{", b"[]", b'{"ask": 5}', b'{"ask": null}', b"\xff\xfe", b'{"ask": "' + b"x" * 9000 + b'"}']
    conversation = asking(
        workplace,
        f"\n    for one in {noise!r}: os.write(int(os.environ['SKILLRUN_EVENTS_FD']), one + b'\\n')\n    print('out')",
    )
    assert conversation.ask("go").text == "over"
    assert outcomes(conversation)[0].text == "out"


def test_something_else_at_the_same_key_is_an_error(workplace: Workplace) -> None:
    """A script gets no answer to one question for another that it asks under the same key."""
    conversation = asking(
        workplace,
        """
    words = "Delete all?" if answers else "Read one?"
    os.write(int(os.environ["SKILLRUN_EVENTS_FD"]), json.dumps({"ask": words, "name": "k"}).encode() + b"\\n")
    """,
    )
    conversation.ask("go")
    conversation.desk.answer("1.0")
    assert conversation.complete().text == "over"
    assert "asks something else as `k`" in outcomes(conversation)[0].text


def test_a_hostile_question_is_shown_as_data(workplace: Workplace) -> None:
    """Escapes and half characters are gone from what a person is shown, and its length is bounded (law 12)."""
    conversation = asking(
        workplace, '\n    ask("k\\x1b[2J", "Approved\\x1b]0;x\\x07\\x1b[1A\\udc80 " + "y" * 6000)'
    )
    conversation.ask("go")
    question = one_waiting(conversation).question
    assert question is not None
    assert "\x1b" not in question.message + question.key
    question.message.encode()
    assert len(question.message) <= 4000
    assert one_waiting(conversation).state is State.AWAITING_INPUT


def test_a_script_that_asks_without_a_conversation(workplace: Workplace) -> None:
    """By itself in a toolbox nobody can be asked: an error, and nothing waits."""
    conversation = asking(workplace, '\n    ask("k", "Where?")')
    outcome = conversation._round.turn.box.turn().call("demo__act", {})
    assert outcome.is_error
    assert "nobody can be asked here" in outcome.text


@pytest.mark.parametrize("size", [1_000, 300_000])
def test_an_answer_of_any_size_is_told_or_refused(workplace: Workplace, size: int) -> None:
    """A long answer reaches the script whole; one that no program can be given is an error that the model reads."""
    conversation = asking(
        workplace, '\n    print(len(ask("k", "Text?", text={"type": "string"})["values"]["text"]))'
    )
    conversation.ask("go")
    conversation.desk.answer("1.0", {"text": "x" * size})
    assert conversation.complete().text == "over"
    (outcome,) = outcomes(conversation)
    assert outcome.is_error or outcome.text == str(size)
    assert outcome.is_error == (size > 128_000)


SLOW = """
    import time
    print("first", flush=True)
    while not os.path.exists("go"): time.sleep(0.02)
    print("last", flush=True)
"""


def test_a_background_script_tells_its_output_so_far_and_its_end(workplace: Workplace, file: Path) -> None:
    """The call waits with what was put out; no caller is held; once it is over its result is the call's."""
    conversation = asking(workplace, SLOW, store=SqliteStore(file), background=True)
    began = time.monotonic()
    assert conversation.ask("go").progress is Progress.WAITING
    assert time.monotonic() - began < 10
    until = time.monotonic() + 20
    while conversation.refresh()[0].message != "first\n":
        assert time.monotonic() < until
        time.sleep(0.02)
    assert conversation.complete().look_again == 1.0
    (task,) = conversation.tasks()
    assert (task.status, task.message) == (Status.WORKING, "first\n")
    (workplace.workspace / "go").touch()
    while conversation.complete().progress is Progress.WAITING:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert outcomes(conversation)[0].text == "first\nlast"


TREE = """
    import subprocess, time
    subprocess.Popen([sys.executable, "-c", "import time\\nwhile True: open('beat', 'a').write('x'); time.sleep(0.02)"])
    while True: time.sleep(1)
"""


def test_to_cancel_a_background_script_kills_its_tree(workplace: Workplace) -> None:
    """The script's child beats no more once the conversation was cancelled."""
    front = 'fs_read: ["."]\nfs_write: ["."]\n'
    conversation = beating(workplace, front)
    conversation.cancel()
    settled(workplace.workspace / "beat")
    assert "cancelled" in outcomes(conversation)[0].text
    assert conversation.complete().text == "over"


def beating(workplace: Workplace, front: str, store: Store | None = None) -> Conversation:
    """Start a script in the background whose child writes all the time."""
    workplace.skill("demo", ASKING + TREE, front=front)
    box = workplace.box("sandbox: {fs_read: ['${workspace}'], fs_write: ['${workspace}'], timeout: 60}")
    box.tools[0].background = True  # type: ignore[attr-defined]
    conversation = Conversation(box, Script([calls(("demo__act", {})), "over"]), store=store, name="c")
    conversation.ask("go")
    beat = workplace.workspace / "beat"
    until = time.monotonic() + 20
    while not (beat.exists() and beat.stat().st_size):
        assert time.monotonic() < until
        time.sleep(0.02)
    return conversation


def settled(beat: Path) -> None:
    """Wait until nothing writes any more."""
    until = time.monotonic() + 15
    while True:
        size = beat.stat().st_size
        time.sleep(0.3)
        if beat.stat().st_size == size:
            return
        assert time.monotonic() < until, "it is still alive"


OWNER = """
import sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
import conftest, test_scripts_that_ask as tests
from skillrun.conversation.sqlite import SqliteStore
place = conftest.Workplace(Path({work!r}), Path({home!r}))
talk = tests.beating(place, {front!r}, SqliteStore(Path({file!r})))
print("beats", flush=True)
time.sleep(100)
"""


def test_another_process_leaves_a_living_one_its_script_and_says_interrupted_once_it_is_dead(
    workplace: Workplace, file: Path
) -> None:
    """While the runner's process lives its script is not said to be lost; killed, it took its script along, and that is told."""
    front = 'fs_read: ["."]\nfs_write: ["."]\n'
    tests = os.path.dirname(__file__)  # noqa: PTH120 - text for a program
    program = OWNER.format(
        tests=tests,
        work=str(workplace.workspace),
        home=str(workplace.home),
        front=front,
        file=str(file),
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "beats\n"
        other = Conversation(
            Toolbox(runner=workplace.runner()),
            Script([calls(("demo__act", {})), "over"]),
            store=SqliteStore(file),
            name="c",
        )
        assert other.complete().progress is Progress.WAITING
        assert one_waiting(other).state is State.PAUSED
    finally:
        owner.kill()
        owner.wait()
        assert owner.stdout is not None
        owner.stdout.close()
    settled(workplace.workspace / "beat")
    assert other.complete().text == "over"
    (outcome,) = outcomes(other)
    assert outcome.is_error
    assert outcome.text.startswith("Error (interrupted)")


def test_a_closed_runner_ends_its_background_scripts(workplace: Workplace) -> None:
    """Nothing outlives the runner: its scripts in the background are killed with it (law 9)."""
    conversation = beating(workplace, 'fs_read: ["."]\nfs_write: ["."]\n')
    workplace.runners[-1].close()
    settled(workplace.workspace / "beat")
    until = time.monotonic() + 10
    while conversation.complete().progress is Progress.WAITING:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert outcomes(conversation)[0].is_error
