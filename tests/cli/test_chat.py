"""`chat`: the loop with a program as the model: its protocol, what goes wrong with it, and what waits."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from desk import SKILLS, Sitting, wait_for

from skillrun.conversation.messages import Reply, Said
from skillrun.conversation.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from desk import Desk

MODEL = """import json, os, pathlib, sys
pathlib.Path("pid").write_text(f"{os.getpid()}\\n")
for line in sys.stdin:
    asked = json.loads(line)
    with open("asked.jsonl", "a") as seen:
        seen.write(line)
    last = asked["messages"][-1]
"""
CALLS = """    if last["role"] == "user":
        print(json.dumps({"calls": [{"name": "demo__main", "arguments": {"args": [last["text"]]}, "id": "a"}]}), flush=True)
    else:
        print(json.dumps({"text": "\\x1b[2J".join(one["text"] for one in last["results"])}), flush=True)
"""
ASKS = """#!/usr/bin/env python3
import json, os, sys
answers = json.loads(os.environ.get("SKILLRUN_ANSWERS", "{}"))
if "sure" not in answers:
    with open(int(os.environ["SKILLRUN_EVENTS_FD"]), "w") as events:
        print(json.dumps({"ask": "Are you sure?", "name": "sure", "fields": {"why": {"type": "string"}}}), file=events)
else:
    print("because", answers["sure"]["values"]["why"], *sys.argv[1:])
"""


def model(desk: Desk, body: str) -> str:
    """Write a model and return the command that starts it."""
    (desk.here / "model.py").write_text(MODEL + body)
    return f"{sys.executable} model.py"


def store(desk: Desk) -> Path:
    """Return where the conversations of a desk are kept."""
    return desk.home / ".state" / "skillrun" / "conversations.db"


def said(desk: Desk, name: str = "talk") -> list[Said | Reply]:
    """Return what was said in a conversation."""
    kept = SqliteStore(store(desk))
    try:
        return kept.messages(name)
    finally:
        kept.close()


def asked(desk: Desk) -> list[dict[str, Any]]:
    """Return what the model was asked."""
    return [json.loads(line) for line in (desk.here / "asked.jsonl").read_text().splitlines()]


def test_the_model_calls_a_script_and_answers(confining: Desk) -> None:
    """The whole loop: what the model is asked is the protocol of the page, its answer is shown escaped, and it is ended."""
    confining.skill("demo", '#!/bin/sh\necho "saw $1"\n')
    command = model(confining, CALLS)
    done = confining("chat", "--model", command, "--conversation", "talk", "Ada")
    assert (done.returncode, done.stdout) == (0, "saw Ada\n"), done.stderr
    assert "skillrun: demo/main.sh [" in done.stderr
    assert "is not confined" in done.stderr
    first, second = asked(confining)
    assert (first["messages"], first["choice"], first["calls"]) == (
        [{"role": "user", "text": "Ada"}],
        "auto",
        "many",
    )
    assert [
        (one["name"], one["input_schema"]["type"]) for one in first["tools"] if one["name"] == "demo__main"
    ] == [("demo__main", "object")]
    assert second["messages"][1:] == [
        {"role": "assistant", "text": "", "calls": [{"id": "a", "name": "demo__main", "arguments": {"args": ["Ada"]}}]},
        {"role": "tool", "results": [
            {"id": "a", "name": "demo__main", "text": "saw Ada", "is_error": False, "attachments": []}]},
    ]  # fmt: skip
    assert not os.path.exists(f"/proc/{wait_for(confining.here / 'pid')}")  # noqa: PTH110 - a process
    # It goes on where it stood, in another process, and remembers.
    done = confining("chat", "--model", command, "--conversation", "talk", "-", stdin="Bob")
    assert (done.returncode, done.stdout) == (0, "saw Bob\n")
    assert len(asked(confining)[-1]["messages"]) == 7


def test_it_waits_for_a_person_in_one_process_and_ends_in_others(confining: Desk) -> None:
    """An approval, then a question of the script: exit code 3 with the command that settles it each time, then the answer."""
    confining.skill("demo", ASKS, front="metadata: {skillrun: {approval: true}}\n")
    command = model(confining, CALLS)
    done = confining("chat", "--model", command, "--conversation", "talk", "Ada", "--json")
    assert done.returncode == 3
    assert "skillrun approve talk 1.0 --digest sha256:" in done.stderr
    made = json.loads(done.stdout)
    schema = json.loads((SKILLS.parent / "schemas" / "chat.schema.json").read_text())
    jsonschema.Draft7Validator(schema).validate(made)
    assert (made["progress"], made["text"], [one["key"] for one in made["waiting"]]) == (
        "waiting",
        None,
        ["1.0"],
    )
    since = dt.datetime.fromisoformat(made["waiting"][0]["since"])
    assert abs((dt.datetime.now(dt.timezone.utc) - since).total_seconds()) < 60
    done = confining("chat", "--model", command, "--conversation", "talk", "More")
    assert done.returncode == 2
    assert "error[pending-calls]" in done.stderr
    sitting = Sitting(confining, "approve", "talk", "1.0")
    sitting.until("[y/N]")
    sitting.type("y")
    assert sitting.end() == 0
    done = confining("chat", "--model", command, "--conversation", "talk")
    assert (done.returncode, done.stdout) == (3, "")
    assert "skillrun answer talk 1.0" in done.stderr
    sitting = Sitting(confining, "answer", "talk", "1.0")
    assert "| Are you sure?" in sitting.until("a text:")
    sitting.type("so")
    sitting.until("[y/N]")
    sitting.type("y")
    assert sitting.end() == 0
    done = confining("chat", "--model", command, "--conversation", "talk", "--json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    jsonschema.Draft7Validator(schema).validate(made)
    assert (made["progress"], made["text"]) == ("done", "because so Ada")


def test_the_answer_is_escaped(desk: Desk) -> None:
    """What the model says moves no cursor; its line ends stay."""
    command = model(desk, '    print(json.dumps({"text": "a\\x1b[2J\\u202eb\\n\\tc"}), flush=True)\n')
    assert desk("chat", "--model", command, "Hello").stdout == "a\\x1b[2J\\u202eb\n\tc\n"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('    print(\'{"error": "no key\\\\u001b[2J"}\', flush=True)\n', "says that it failed: no key"),
        ("    sys.exit(7)\n", "ended with exit code 7 before it had replied"),
        ("    import time; time.sleep(60)\n", "did not reply within 1.5 s"),
    ],
    ids=["error", "death", "silence"],
)
def test_a_model_that_does_not_reply(desk: Desk, body: str, told: str) -> None:
    """Garbage, death and silence are errors with exit code 1; what was said stays, and nothing of a reply is kept."""
    done = desk("chat", "--model", model(desk, body), "--conversation", "talk", "--timeout", "1.5", "Hello")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[model-command]" in done.stderr
    assert told in done.stderr
    assert "\x1b" not in done.stderr
    assert said(desk) == [Said("Hello")]
    assert not os.path.exists(f"/proc/{wait_for(desk.here / 'pid')}")  # noqa: PTH110 - a process


def test_what_was_not_replied_can_be_completed(desk: Desk) -> None:
    """After a failure the same conversation goes on without MESSAGE."""
    assert (
        desk(
            "chat", "--model", model(desk, "    sys.exit(1)\n"), "--conversation", "talk", "Hello"
        ).returncode
        == 1
    )
    command = model(desk, '    print(json.dumps({"text": str(len(asked["messages"]))}), flush=True)\n')
    done = desk("chat", "--model", command, "--conversation", "talk")
    assert (done.returncode, done.stdout) == (0, "1\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_the_conversation_usable(
    desk: Desk, nothing_left: Callable[[int], None], number: int
) -> None:
    """Ctrl-C while the model thinks: its exit code, no process left, and the conversation goes on."""
    command = model(desk, "    open('thinks', 'w').write('x\\n')\n    import time; time.sleep(60)\n")
    process = desk.start("chat", "--model", command, "--conversation", "talk", "Hello")
    wait_for(desk.here / "thinks")
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (128 + number, "")
    assert "Traceback" not in err
    nothing_left(int(wait_for(desk.here / "pid")))
    command = model(desk, '    print(json.dumps({"text": "back"}), flush=True)\n')
    assert desk("chat", "--model", command, "--conversation", "talk").stdout == "back\n"


def test_a_call_that_is_stopped_has_its_result(confining: Desk) -> None:
    """Ctrl-C while a script runs: the script is dead, and the model reads that the call was cancelled."""
    confining.skill("demo", "#!/bin/sh\necho now >&2\nsleep 60\n")
    command = model(confining, CALLS)
    process = confining.start("chat", "--model", command, "--conversation", "talk", "Ada")
    assert process.stderr is not None
    for line in process.stderr:
        if "demo/main.sh" in line:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    done = confining("chat", "--model", command, "--conversation", "talk")
    assert done.returncode == 0, done.stderr
    assert "it was cancelled while it was made" in done.stdout


def test_a_model_that_goes_on_for_ever_is_stopped(desk: Desk) -> None:
    """After so many replies: exit code 1, and the conversation can be gone on with."""
    body = '    print(json.dumps({"calls": [{"name": "nothing"}]}), flush=True)\n'
    done = desk("chat", "--model", model(desk, body), "--conversation", "talk", "--steps", "3", "Go")
    assert (done.returncode, done.stdout) == (1, "")
    assert "used up its replies" in done.stderr
    assert len(asked(desk)) == 3
    assert "there is no tool `nothing`" in asked(desk)[-1]["messages"][-1]["results"][0]["text"]


def test_its_own_complaints_pass_through(desk: Desk) -> None:
    """Standard error of the model is the caller's, its standard output never is."""
    command = model(
        desk, "    print('thinking', file=sys.stderr)\n    print(json.dumps({'text': 'ok'}), flush=True)\n"
    )
    done = desk("chat", "--model", command, "Hello")
    assert done.stdout == "ok\n"
    assert "thinking\n" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--model", "true"], 2, "nothing to say"),
        (["Hello"], 2, "--model"),
        (["--model", "'", "Hello"], 2, "`--model` can't be read"),
        (["--model", " ", "Hello"], 2, "names no command"),
        (["--model", "./no-such-program", "Hello"], 2, "can't be started"),
        (["--model", "true", "--conversation", "../x", "Hello"], 2, "conversation-name"),
        (["--model", "true", "--conversation", "talk"], 2, "nothing was said yet"),
        (["--model", "true", " "], 2, "nothing was said"),
        (["--model", "true", "--timeout", "0", "Hello"], 2, "0"),
        (["--model", "true", "--store", "kept.db", "Hello"], 2, "would lie in the workspace"),
    ],
)
def test_wrong_usage(desk: Desk, words: list[str], code: int, told: str) -> None:
    """Each is said before anything is kept; a store where scripts work is none."""
    done = desk("chat", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert not (desk.here / "kept.db").exists()
    assert not store(desk).exists() or not said(desk)


def test_no_script_reaches_a_store_that_was_named(confining: Desk) -> None:
    """A file elsewhere is hidden from scripts with a grant of the folder that it lies in: not read, not written, not agreed to."""
    other = confining.home / "other"
    other.mkdir(mode=0o700)
    (other / "beside.txt").write_text("beside\n")
    script = f"#!/bin/sh\ncat {other}/beside.txt\ncat {other}/kept.db >/dev/null && echo READ\necho x >> {other}/kept.db && echo WROTE\ntrue\n"
    confining.skill("demo", script, front=f"fs_read: [{other}]\nfs_write: [{other}]\n")
    (confining.home / "mine.yaml").write_text(f"sandbox: {{fs_read: [{other}], fs_write: [{other}]}}\n")
    done = confining(
        "chat", "--model", model(confining, CALLS), "--store", str(other / "kept.db"), "--ceiling",
        str(confining.home / "mine.yaml"), "--conversation", "talk", "Go",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "beside" in done.stdout
    assert "READ" not in done.stdout
    assert "WROTE" not in done.stdout
    assert confining("pending", "talk", "--store", str(other / "kept.db")).returncode == 0


def test_what_was_agreed_to_and_is_changed_waits_again(confining: Desk) -> None:
    """A script that is edited behind the agreement is not started; what changed is shown, and a new word is needed."""
    folder = confining.skill(
        "demo", "#!/bin/sh\necho first\n", front="metadata: {skillrun: {approval: true}}\n"
    )
    own = confining.home / ".config" / "skillrun" / "skillrun.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("tools: {unattended_approval: true}\n")
    words = ["chat", "--model", model(confining, CALLS), "--conversation", "talk"]
    assert confining(*words, "Ada").returncode == 3
    assert confining("approve", "talk", "1.0", "--yes").returncode == 0
    (folder / "scripts" / "main.sh").write_text("#!/bin/sh\necho second\n")
    done = confining(*words)
    assert (done.returncode, done.stdout) == (3, "")
    assert "demo/main.sh" not in done.stderr  # nothing was started
    shown = confining("pending").stdout
    assert "CHANGED" in shown
    assert "    version     - sha256:" in shown
    assert confining("approve", "talk", "1.0", "--yes").returncode == 0
    assert confining(*words).stdout == "second\n"
