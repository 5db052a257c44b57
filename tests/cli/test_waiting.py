"""`pending`, `approve`, `deny`, `answer`, `settle`: what a person is shown, and whose word counts."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from desk import SKILLS, Sitting

from skillrun.cli.fields import from_words
from skillrun.conversation.entry import Claim, Decision, Entry, State
from skillrun.conversation.messages import Reply, Said
from skillrun.conversation.sqlite import SqliteStore
from skillrun.errors import UsageError
from skillrun.tools.asking import Question
from skillrun.tools.outcome import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from desk import Desk

DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
TERMS: dict[str, Any] = {
    "tool": "deploy__go",
    "identity": ["/skills", "/skills/deploy", "go.py"],
    "skill": "deploy",
    "folder": "/skills/deploy",
    "script": "go.py",
    "version": "sha256:" + "c" * 64,
    "interpreter": "/usr/bin/python3",
    "workspace": "/work",
    "unconfined": False,
    "granted": [
        ["fs_write", "/work/out"],
        ["network", "True"],
        ["timeout", "60"],
        ["limits", "memory=1048576"],
    ],
    "denied": ["/work/.env"],
}
ASKED = Question(
    "q0",
    "Which environment?",
    {
        "type": "object",
        "properties": {
            "env": {"enum": ["staging", "live"], "description": "where to"},
            "sure": {"type": "boolean"},
            "count": {"type": "integer", "minimum": 1, "default": 2},
            "note": {"type": "string"},
        },
        "required": ["env", "sure"],
        "additionalProperties": False,
    },
)
HOSTILE = "x\x1b[2J\u202e\u200b\rskillrun: agreed\n  UNCONFINED    no\nmay this call be made? [y/N] y\x9b"
ALLOWED = "tools: {unattended_approval: true}\n"


def path(desk: Desk) -> Path:
    """Return where the conversations of a desk are kept."""
    return desk.home / ".state" / "skillrun" / "conversations.db"


@contextlib.contextmanager
def opened(desk: Desk) -> Iterator[SqliteStore]:
    """Give the store of a desk."""
    store = SqliteStore(path(desk))
    try:
        yield store
    finally:
        store.close()


def waits(desk: Desk, *entries: Entry, name: str = "talk") -> None:
    """Keep a conversation whose last reply has these calls."""
    with opened(desk) as store:
        calls = tuple(one.call for one in entries)
        made = [replace(one, conversation=name, seq=1, position=number) for number, one in enumerate(entries)]
        assert store.append(name, 0, Said("Deploy it"))
        assert store.append(name, 1, Reply(calls=calls), made)


def approval(arguments: Any = None, **more: Any) -> Entry:
    """Make a call that waits for a person's agreement."""
    call = ToolCall("deploy__go", {"env": "live"} if arguments is None else arguments, "call_1")
    made = Entry("", 0, 0, call, State.AWAITING_APPROVAL, digest=DIGEST, terms=TERMS, since=1_000_000_000.0)
    return replace(made, **more)


def question(asked: Question = ASKED, **more: Any) -> Entry:
    """Make a call that waits for an answer."""
    return approval(state=State.AWAITING_INPUT, question=asked, **more)


def doubtful() -> Entry:
    """Make a call whose process is gone."""
    gone = Claim(os.uname().nodename, "another boot", 1, 0.0, 0.0, 1e12)
    return approval(state=State.RUNNING, claim=gone, attempts=1)


def now(desk: Desk, key: str = "1.0") -> Entry:
    """Return a call as it is kept now."""
    with opened(desk) as store:
        return next(one for one in store.entries("talk") if one.key == key)


def allowed(desk: Desk, text: str = ALLOWED) -> None:
    """Write the operator's own file."""
    own = desk.home / ".config" / "skillrun" / "skillrun.yaml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(text)


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


# Answers


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
