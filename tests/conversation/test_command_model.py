"""A program as a model: the protocol, and everything that a program can do instead of replying."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from skillrun.conversation.messages import Answered, Reply, Said
from skillrun.conversation.model import Calls, Offer, Use
from skillrun.conversation.models.command import CommandError, CommandModel, reply_of, request
from skillrun.tools.box import Toolbox
from skillrun.tools.outcome import Attachment, Outcome, ToolCall

ENVIRON = {"PATH": "/usr/bin:/bin"}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def offer(choice: Use | str = Use.AUTO, calls: Calls = Calls.MANY) -> Offer:
    """Offer one tool."""
    return Offer(Toolbox([add]).turn(), choice, calls)


def made(tmp_path: Path, script: str, *, timeout: float = 5.0) -> CommandModel:
    """Start a shell script as a model."""
    return CommandModel(["sh", "-c", script], folder=tmp_path, environ=ENVIRON, timeout=timeout)


def asked(model: CommandModel, text: str = "Hello") -> Reply:
    """Ask a model."""
    return model([Said(text)], offer())


def test_the_question_is_the_whole_conversation() -> None:
    """Messages of each kind, the tools, the choice and how many calls: as the page says."""
    call = ToolCall("add", {"a": 1}, "c1")
    outcome = Outcome("2", attachments=(Attachment("x.bin", "a/b", b"\x00"),), is_error=True, call=call)
    messages = [Said("Add"), Reply("I do", (call,)), Answered((outcome,))]
    made = request(messages, offer("add", Calls.ONE))
    assert made["messages"] == [
        {"role": "user", "text": "Add"},
        {"role": "assistant", "text": "I do", "calls": [{"id": "c1", "name": "add", "arguments": {"a": 1}}]},
        {"role": "tool", "results": [
            {"id": "c1", "name": "add", "text": "2", "is_error": True,
             "attachments": [{"name": "x.bin", "media_type": "a/b", "base64": "AA=="}]}]},
    ]  # fmt: skip
    assert (made["choice"], made["calls"]) == ({"tool": "add"}, "one")
    assert request(messages, offer(Use.REQUIRED))["choice"] == "required"
    [tool] = made["tools"]
    assert (tool["name"], tool["description"]) == ("add", "Add two numbers.")
    assert tool["input_schema"]["required"] == ["a", "b"]


def test_a_reply_is_read(tmp_path: Path) -> None:
    """Text, calls with and without arguments and ids; what is not known is ignored; one program answers many times."""
    line = {
        "text": "a",
        "calls": [{"name": "add", "arguments": {"a": 1}, "id": "x"}, {"name": "b"}],
        "more": 1,
    }
    assert reply_of(json.dumps(line).encode()) == Reply(
        "a", (ToolCall("add", {"a": 1}, "x"), ToolCall("b")), provider="command"
    )
    assert reply_of(b'{"calls": null, "text": null}') == Reply(provider="command")
    script = 'n=0; while read line; do n=$((n+1)); echo "{\\"text\\": \\"$n\\"}"; done'
    with made(tmp_path, script) as model:
        assert [asked(model).text for _ in range(3)] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("hello", "no JSON"),
        ("", "no JSON"),
        ('{"text": NaN}', "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "no object"),
        ("{}", "neither `text` nor `calls`"),
        ('{"text": 1}', "`text` that is no text"),
        ('{"calls": {"name": "x"}}', "`calls` that are no list"),
        (json.dumps({"calls": [{"name": "x"}] * 101}), "`calls` that are no list"),
        ('{"calls": ["x"]}', "a call without a `name`"),
        ('{"calls": [{"name": ""}]}', "a call without a `name`"),
        ('{"calls": [{"name": "x", "arguments": "y"}]}', "`arguments` are no object"),
        ('{"error": "no key"}', "says that it failed: no key"),
    ],
    ids=range(13),
)
def test_what_is_no_reply(line: str, told: str, tmp_path: Path) -> None:
    """Each kind of garbage is an error that says what it is, and the program is ended."""
    (tmp_path / "line").write_text(line + "\n")
    with made(tmp_path, "read question; cat line; read more") as model:
        with pytest.raises(CommandError, match=told):
            asked(model)
        with pytest.raises(CommandError, match="has ended already"):
            asked(model)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("exit 7", "ended with exit code 7 before it had replied"),
        ("read line; exit 0", "ended with exit code 0 before it had replied"),
        ("read line; kill -9 $$", "ended by signal 9"),
        ('read line; echo \'{"text": "half"\'; exit 3', "no JSON"),
        ("read line; printf half; exit 3", "ended with exit code 3"),
        ("read line; exec >&-; sleep 5", "closed its output"),
        ("read line; sleep 30", "did not reply within 0.5 s"),
        ("sleep 30", "did not reply within 0.5 s"),
        ('read line; printf \'{"text": "a"}\\n{"text": "b"}\\n\'; read more', "more than one line"),
        ("read line; head -c 20000000 /dev/zero", "more than 16 MiB"),
    ],
)
def test_a_program_that_does_not_reply(script: str, told: str, tmp_path: Path) -> None:
    """It dies, is silent, says half of it, too much, or twice: an error in time."""
    silent = "did not" in told
    began = time.monotonic()
    with (
        made(tmp_path, script, timeout=0.5 if silent else 20) as model,
        pytest.raises(CommandError, match=told),
    ):
        asked(model)
    assert time.monotonic() - began < 15


def test_what_nobody_asked_for_is_no_reply(tmp_path: Path) -> None:
    """A second line that comes late would answer the next question: it is an error there, and never taken for its reply."""
    script = 'read line; echo \'{"text": "a"}\'; sleep 0.3; echo \'{"text": "b"}\'; read line; echo \'{"text": "c"}\'; read more'
    with made(tmp_path, script) as model:
        assert asked(model).text == "a"
        time.sleep(0.8)
        with pytest.raises(CommandError, match="was not asked for"):
            asked(model)


def test_a_question_larger_than_a_pipe(tmp_path: Path) -> None:
    """It goes through whole; a program that reads none of it and replies is no model."""
    big = "x" * 3_000_000
    program = "import json, sys\nfor line in sys.stdin: print(json.dumps({'text': str(len(json.loads(line)['messages'][0]['text']))}), flush=True)"
    with CommandModel([sys.executable, "-c", program], folder=tmp_path, environ=ENVIRON) as model:
        assert asked(model, big).text == "3000000"
    with (
        made(tmp_path, 'head -c 10 >/dev/null; echo \'{"text": "a"}\'; sleep 5') as model,
        pytest.raises(CommandError, match="before it had read"),
    ):
        asked(model, big)
    with (
        made(tmp_path, 'echo \'{"text": "a"}\'; sleep 5') as model,
        pytest.raises(CommandError, match=r"before it had read|was not asked for"),
    ):
        asked(model, big)


@pytest.mark.parametrize("words", [["./no-such-program"], ["no-such-program"], [""], ["x\0y"], ["/"]])
def test_a_program_that_can_not_be_started(words: list[str], tmp_path: Path) -> None:
    """The error names it and says why."""
    with pytest.raises(CommandError, match="can't be started"):
        CommandModel(words, folder=tmp_path, environ=ENVIRON)


def test_it_gets_what_it_was_given_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder and the variables of the caller's choice, not those of this process."""
    monkeypatch.setenv("OF_THIS_PROCESS", "1")
    script = 'read line; echo "{\\"text\\": \\"$PWD $OF_THIS_PROCESS $GIVEN\\"}"'
    environ = {**ENVIRON, "GIVEN": "2"}
    with CommandModel(["sh", "-c", script], folder=tmp_path, environ=environ) as model:
        assert asked(model).text == f"{tmp_path}  2"


@pytest.mark.parametrize(
    "script",
    ["read a; read b", "trap '' TERM; while :; do sleep 0.1; done", "sleep 60 & wait", "sleep 60 & read a"],
)
def test_nothing_is_left_of_it(script: str, tmp_path: Path) -> None:
    """One that ends with its input, one that takes no TERM, one with a child that outlives it or not: none is there when it is closed."""
    with closing(made(tmp_path, f"echo $$ > pid; {script}")) as model:
        end = time.monotonic() + 10
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert time.monotonic() < end
            time.sleep(0.01)
        pid = int((tmp_path / "pid").read_text())
        os.kill(pid, 0)
    model.close()
    end = time.monotonic() + 5  # what was killed needs a moment to die
    while _group(pid):
        assert time.monotonic() < end
        time.sleep(0.01)


def _group(leader: int) -> list[Any]:
    """Return the processes of a group that still run."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if fields[2] == str(leader) and fields[0] != "Z":
            found.append(folder.name)
    return found
