"""`pending`, `approve`, `deny`: what a person is shown, and whose word counts."""

from __future__ import annotations

import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import jsonschema
import pytest
from desk import SKILLS, Sitting
from waits import (
    ALLOWED,
    DIGEST,
    HOSTILE,
    OTHER,
    TERMS,
    allowed,
    approval,
    doubtful,
    now,
    opened,
    path,
    question,
    waits,
)

from skillrun.conversation.entry import Decision, State
from skillrun.tools.asking import Question
from skillrun.tools.outcome import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from desk import Desk

# What is shown


def test_pending_shows_a_call_whole(desk: Desk, snapshot: Callable[[str, str], None]) -> None:
    """An approval with everything that it is bound to, a question, a task, one in doubt: the oldest first."""
    paused = {"status": "working", "message": "half of it", "data": {}, "poll_interval": 5.0}
    waits(
        desk,
        question(since=1_000_000_500.0),
        approval(),
        replace(approval(), state=State.PAUSED, task=paused, terms={}, digest="", since=1_000_000_200.0),
        replace(doubtful(), since=1_000_000_300.0),
    )
    done = desk("pending", COLUMNS="100")
    assert (done.returncode, done.stderr) == (0, "4 calls without a result\n")
    snapshot("pending.txt", done.stdout)


def test_what_has_changed_is_told(desk: Desk, snapshot: Callable[[str, str], None]) -> None:
    """A call that was agreed to and is something else since shows each difference, and that nothing confines it."""
    after = {
        **TERMS,
        "version": "sha256:" + "d" * 64,
        "unconfined": True,
        "granted": [["fs_read", "/a b"], ["timeout", "60"]],
    }
    waits(desk, approval(terms={**after, "before": TERMS}))
    snapshot("pending-changed.txt", desk("pending", "talk").stdout)


def test_the_json_is_what_its_schema_says(desk: Desk) -> None:
    """`schemas/pending.schema.json` takes every kind of call, and the arguments come back as they were."""
    paused = {"status": "working", "message": "", "data": {}, "poll_interval": None}
    word = Decision(agreed=True, who="ada", when=1.0, digest=DIGEST)
    waits(
        desk,
        approval({"deep": [{"a": HOSTILE}]}, expires=time.time() + 60),
        question(),
        replace(approval(), state=State.PAUSED, task=paused, terms={"tool": "x", "identity": ["m", "C"]}),
        replace(doubtful(), decision=word),
        approval(state=State.READY, terms={**TERMS, "before": TERMS}, expires=1.0),
        question(digest="", terms={}),
    )
    done = desk("pending", "--json")
    assert done.stdout.isprintable() is False  # it has line ends,
    assert not [
        one for one in done.stdout if one != "\n" and not one.isprintable()
    ]  # and nothing else that is hidden
    made = json.loads(done.stdout)
    schema = json.loads((SKILLS.parent / "schemas" / "pending.schema.json").read_text())
    validator = jsonschema.Draft7Validator(schema)
    validator.validate(made)
    by_key = {one["key"]: one for one in made["calls"]}
    assert by_key["1.0"]["arguments"] == {"deep": [{"a": HOSTILE}]}
    assert [by_key[f"1.{n}"]["over"] for n in (0, 4)] == [False, True]
    assert by_key["1.3"]["state"] == "in_doubt"
    assert [by_key["1.5"][one] for one in ("digest", "approval", "claim", "task")] == [None] * 4
    by_key["1.0"]["state"] = "answered"
    assert not validator.is_valid(made)


def test_nothing_that_others_wrote_passes_for_skillruns_words(desk: Desk) -> None:
    """Arguments, names, questions and addresses are behind a bar on every line, escaped, cut here and not by the terminal."""
    padded = "p" + " " * 30 + "agreed to     by root" + " " * 100 + "UNCONFINED    no"
    evil = Question(
        "q0", HOSTILE, {"type": "object", "properties": {HOSTILE: {"type": "string", "description": HOSTILE}}}
    )
    page = Question("q1", HOSTILE, {}, "https://\u0430pple.com@evil.example/\u202e")
    waits(
        desk,
        approval({"a": HOSTILE, HOSTILE: padded}, terms={**TERMS, "skill": padded, "folder": HOSTILE}),
        replace(question(evil), call=ToolCall(f"n{HOSTILE}", {})),
        question(page),
    )
    done = desk("pending", COLUMNS="40")
    hidden = [hex(ord(one)) for one in done.stdout if one != "\n" and not one.isprintable()]
    assert hidden == []
    lines = done.stdout.splitlines()
    for line in lines:
        assert len(line) <= 40 or line.startswith(("  settle", "talk ")), line
        assert not line.startswith(("may this", "skillrun:", "UNCONFINED"))
    facts = [line for line in lines if not line.startswith(("  | ", "  + "))]
    assert not [line for line in facts if line.startswith(("  UNCONFINED", "  agreed to"))]
    # Nothing is left out: what was cut comes together again.
    joined = "".join(
        ("\n" if line.startswith("  | ") else "") + line[4:] for line in lines if line[:4] in {"  | ", "  + "}
    )
    assert json.dumps(padded) in joined
    assert "\\u202e" in joined
    assert "evil.example" in "".join(facts)
    assert "\\u0430pple" in joined


def test_pending_where_nothing_is(desk: Desk) -> None:
    """No file: no call waits, and none is made; a conversation that is not there is an error."""
    done = desk("pending")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no call waits\n")
    assert not path(desk).parent.exists()
    assert json.loads(desk("pending", "--json").stdout)["calls"] == []
    for words in (
        ["pending", "talk"],
        ["approve", "talk", "1.0", "--yes"],
        ["settle", "talk", "1.0", "--cancel", "--yes"],
    ):
        allowed(desk)
        done = desk(*words)
        assert done.returncode == 2
        assert "error[no-such-conversation]" in done.stderr
    assert not path(desk).parent.exists()


def test_without_a_state_folder(desk: Desk) -> None:
    """Nobody knows where to look, and says how to say it; `--store` works without one."""
    waits(desk, approval())
    done = desk("pending", HOME="relative", XDG_STATE_HOME="")
    assert done.returncode == 2
    assert "error[store-place]" in done.stderr
    assert "--store" in done.stderr
    done = desk("pending", "--store", str(path(desk)), HOME="relative", XDG_STATE_HOME="")
    assert done.returncode == 0
    assert f"--store {path(desk)}" in done.stdout


def test_a_file_that_is_no_store(desk: Desk) -> None:
    """Another program's file is left alone, and is an error with its name."""
    path(desk).parent.mkdir(parents=True, mode=0o700)
    path(desk).write_text("a diary")
    done = desk("pending")
    assert done.returncode == 2
    assert str(path(desk)) in done.stderr
    assert path(desk).read_text() == "a diary"


def test_a_reader_that_is_gone(desk: Desk) -> None:
    """`pending | true` is 141, and a person's word is not taken when nobody can see what it is about."""
    waits(desk, approval({"long": "x" * 200_000}))
    command = desk.command("pending")
    shell = f"{' '.join(command)} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", shell],
        cwd=desk.here,
        env=desk.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (141, "")
    allowed(desk)
    outer, inner = os.pipe()
    os.close(outer)
    process = subprocess.Popen(
        desk.command("approve", "talk", "1.0", "--yes"), cwd=desk.here, env=desk.environment(), stderr=inner, stdin=subprocess.DEVNULL
    )  # fmt: skip
    os.close(inner)
    assert process.wait(30) == 141
    assert now(desk).state is State.AWAITING_APPROVAL


@pytest.mark.parametrize("named", [".", "/dev/null", "none.db", "loop", "a" * 300, "file/x.db"])
def test_a_store_that_is_none(desk: Desk, named: str) -> None:
    """A folder, a device, a name that is not there or can't be one: an error that names it, and nothing is made."""
    (desk.here / "loop").symlink_to("loop")
    (desk.here / "file").write_text("")
    before = sorted(desk.here.iterdir())
    done = desk("pending", "--store", named)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[" in done.stderr
    assert sorted(desk.here.iterdir()) == before


# Whose word counts


def test_without_a_terminal_nobody_agrees(desk: Desk) -> None:
    """A `y` in a pipe is nobody's word, also where `--yes` would be allowed; nothing changes."""
    waits(desk, approval())
    allowed(desk)
    for words in (["approve", "talk", "1.0", "--digest", DIGEST], ["settle", "talk", "1.0", "--cancel"]):
        done = desk(*words, stdin="y\nyes\n")
        assert done.returncode == 2
        assert "error[settle-terminal]" in done.stderr
    assert now(desk).state is State.AWAITING_APPROVAL


@pytest.mark.parametrize(
    ("own", "named", "counts"),
    [
        (None, None, False),
        (ALLOWED, None, True),
        (None, ALLOWED, True),
        (ALLOWED, "tools: {unattended_approval: false}\n", False),
    ],
)
def test_where_yes_counts(desk: Desk, own: str | None, named: str | None, counts: bool) -> None:  # noqa: FBT001 - a parameter
    """Only where an operator's file says so and none of them says no; then it is written down that nobody was asked."""
    waits(desk, approval())
    if own is not None:
        allowed(desk, own)
    words = ["approve", "talk", "1.0", "--yes"]
    if named is not None:
        (desk.here / "mine.yaml").write_text(named)
        words += ["--ceiling", "mine.yaml"]
    done = desk(*words)
    assert (done.returncode, now(desk).state) == (
        (0, State.READY) if counts else (2, State.AWAITING_APPROVAL)
    )
    if counts:
        word = now(desk).decision
        assert word is not None
        assert (word.agreed, word.digest, word.who.endswith("(--yes)")) == (True, DIGEST, True)
        assert "/work/out" in done.stderr  # what was agreed to is told all the same
    else:
        assert "error[settle-unattended]" in done.stderr


def test_a_project_can_not_allow_it(desk: Desk) -> None:
    """A cloned folder's `skillrun.yaml` is never asked, and a run there says that the key is not its to say."""
    waits(desk, approval())
    (desk.here / "skillrun.yaml").write_text(ALLOWED)
    done = desk("approve", "talk", "1.0", "--yes")
    assert done.returncode == 2
    assert "error[settle-unattended]" in done.stderr
    desk.skill("demo")
    assert "is the operator's to say, not a project's" in desk("show", "demo").stderr
    assert now(desk).state is State.AWAITING_APPROVAL


def test_yes_on_a_terminal_needs_the_same(desk: Desk) -> None:
    """`--yes` is no way around the question either."""
    waits(desk, approval())
    sitting = Sitting(desk, "approve", "talk", "1.0", "--yes")
    assert sitting.end() == 2
    assert "settle-unattended" in sitting.told
    assert now(desk).state is State.AWAITING_APPROVAL


# At a terminal


@pytest.mark.parametrize(
    ("typed", "state", "code"),
    [("y", State.READY, 0), ("", State.AWAITING_APPROVAL, 1),
     ("sure", State.AWAITING_APPROVAL, 1), ("\x04", State.AWAITING_APPROVAL, 1)],
)  # fmt: skip
def test_a_person_agrees_or_not(desk: Desk, typed: str, state: State, code: int) -> None:
    """The call is shown whole and asked about; only a clear yes counts, what stands there is what is agreed to."""
    waits(desk, approval())
    sitting = Sitting(desk, "approve", "talk", "1.0")
    shown = sitting.until("may this call be made? [y/N]")
    for fact in ('"env": "live"', "/skills/deploy", "go.py", TERMS["version"], "write /work/out", DIGEST):
        assert fact in shown
    if typed == "\x04":
        sitting.close_input()
    else:
        sitting.type(typed)
    assert sitting.end() == code
    assert now(desk).state is state
    assert (now(desk).since == 1_000_000_000.0) is (code != 0)  # since when it stands like that
    word = now(desk).decision
    assert (word is not None) is (code == 0)
    assert word is None or "(--yes)" not in word.who


def test_a_stop_at_the_question_is_no_word(desk: Desk) -> None:
    """Ctrl-C while it is asked: exit code 130, and the call waits on."""
    waits(desk, approval())
    sitting = Sitting(desk, "approve", "talk", "1.0")
    sitting.until("[y/N]")
    sitting.interrupt()
    assert sitting.end() == 130
    assert now(desk).state is State.AWAITING_APPROVAL


def test_what_was_typed_before_the_question_is_no_answer(desk: Desk) -> None:
    """A `y` that waits in the terminal since before the call was shown does not agree to it."""
    waits(desk, approval())
    sitting = Sitting(desk, "approve", "talk", "1.0")
    sitting.type("y")
    sitting.until("may this call be made? [y/N]")
    sitting.type("")
    assert sitting.end() == 1
    assert now(desk).state is State.AWAITING_APPROVAL


def test_what_changes_while_somebody_reads_is_not_agreed_to(desk: Desk) -> None:
    """The digest that was shown is what counts: terms that change behind the question are refused."""
    waits(desk, approval())
    sitting = Sitting(desk, "approve", "talk", "1.0")
    sitting.until("[y/N]")
    with opened(desk) as store:
        entry = store.entries("talk")[0]
        assert store.swap(entry, replace(entry, digest=OTHER, terms={**TERMS, "workspace": "/elsewhere"}))
    sitting.type("y")
    assert sitting.end() == 2
    assert "it has changed since it was shown" in sitting.told
    assert now(desk).state is State.AWAITING_APPROVAL


def test_another_digest_is_refused_before_anything_is_asked(desk: Desk) -> None:
    """`--digest` of what was looked at once does not agree to what stands there now."""
    waits(desk, approval())
    allowed(desk)
    done = desk("approve", "talk", "1.0", "--digest", OTHER, "--yes")
    assert (done.returncode, now(desk).state) == (2, State.AWAITING_APPROVAL)
    assert "error[call-changed]" in done.stderr
    assert desk("approve", "talk", "1.0", "--digest", DIGEST, "--yes").returncode == 0
    assert now(desk).state is State.READY


def test_two_people_at_once(desk: Desk) -> None:
    """Both are asked; the first word counts, and the second one is told so."""
    waits(desk, approval())
    one, two = Sitting(desk, "approve", "talk", "1.0"), Sitting(desk, "deny", "talk", "1.0")
    one.until("[y/N]")
    two.until("[y/N]")
    one.type("y")
    assert one.end() == 0
    two.type("y")
    assert two.end() == 2
    assert "error[call-state]" in two.told
    assert now(desk).state is State.READY


def test_many_at_once(desk: Desk) -> None:
    """Of a yes and a no at the same moment one counts, and it is the one whose command says so."""
    allowed(desk)
    waits(desk, *(approval() for _ in range(2)))
    for number in range(2):
        with ThreadPoolExecutor(2) as threads:
            both = [
                threads.submit(desk, word, "talk", f"1.{number}", "--yes") for word in ("approve", "deny")
            ]
        codes = [one.result().returncode for one in both]
        assert sorted(codes) == [0, 2]
        assert now(desk, f"1.{number}").state is (State.READY if codes[0] == 0 else State.ANSWERED)


def test_a_denial_is_told_to_the_model(desk: Desk) -> None:
    """The reason is what the model reads, without what a terminal obeys."""
    waits(desk, approval())
    sitting = Sitting(desk, "deny", "talk", "1.0", "--reason", "not on a \x1b[31mFriday")
    sitting.until("say no to this call? [y/N]")
    sitting.type("y")
    assert sitting.end() == 0
    assert now(desk).state is State.ANSWERED
    assert (
        "a person said no to this call; it was not made: not on a Friday" in (now(desk).outcome or {})["text"]
    )


def test_a_call_that_waits_for_something_else(desk: Desk) -> None:
    """Each command says what the call waits for, and which command that needs; a call or key that is not there is named."""
    allowed(desk)
    waits(desk, question(), approval(), approval(state=State.READY))
    for words, told in (
        (["approve", "talk", "1.0"], "waits for an answer"),
        (["deny", "talk", "1.0"], "skillrun answer talk 1.0"),
        (["answer", "talk", "1.1", "--decline"], "waits for a person's agreement"),
        (["settle", "talk", "1.1", "--retry"], "skillrun approve talk 1.1"),
        (["approve", "talk", "1.2"], "is ready to be made"),
        (["approve", "talk", "7.7"], "no call `7.7`"),
        (["approve", "nobody", "1.0"], "no conversation `nobody`"),
    ):
        done = desk(*words, "--yes")
        assert done.returncode == 2, words
        assert told in done.stderr, words


def test_a_call_whose_time_is_over(desk: Desk) -> None:
    """It is shown as over, and nobody can agree to it any more."""
    allowed(desk)
    waits(desk, approval(expires=1_000_000_100.0))
    assert "which is over" in desk("pending").stdout
    assert desk("approve", "talk", "1.0", "--yes").returncode == 2
    assert now(desk).state is not State.READY


def test_a_call_that_can_not_be_made_can_not_be_agreed_to(desk: Desk) -> None:
    """Where nobody knows what would run, a yes is an error with the reason; a no is one all the same."""
    allowed(desk)
    waits(desk, approval(digest="", terms={"tool": "x", "problem": "the skill is gone"}))
    assert "the skill is gone" in desk("pending").stdout
    done = desk("approve", "talk", "1.0", "--yes")
    assert done.returncode == 2
    assert "the skill is gone" in done.stderr
    assert desk("deny", "talk", "1.0", "--yes").returncode == 0
    assert now(desk).state is State.ANSWERED
