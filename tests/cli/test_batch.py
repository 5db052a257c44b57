"""`skillrun batch`: one line of answer for each call, whatever is in the file, and it can be gone on with."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from skillrun.running.lines import KEYS, read_lines

if TYPE_CHECKING:
    from pathlib import Path

    from desk import Desk

ECHO = '#!/bin/sh\necho "$1" >> "$WORKSPACE/out/made"\ncat\necho "$@"\nexit "${2:-0}"\n'
FRONT = 'fs_write: ["${workspace}/out"]\n'
CEILING = 'sandbox:\n  fs_read: ["${workspace}"]\n  fs_write: ["${workspace}/out"]\n'


def write(desk: Desk, *calls: Any, name: str = "calls.jsonl") -> Path:
    """Write calls, and texts as they are."""
    path = desk.here / name
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in calls))
    return path


def ready(desk: Desk) -> None:
    """Write the skill `echo`, a ceiling that lets it note its calls, and the folder for that."""
    desk.skill("echo", ECHO, front=FRONT)
    (desk.here / "ceiling.yaml").write_text(CEILING)
    (desk.here / "out").mkdir()


def answers(text: str) -> list[dict[str, Any]]:
    """Read answers in the order of the lines."""
    return sorted((json.loads(line) for line in text.splitlines()), key=lambda one: one["line"])


def call(*arguments: str, **more: Any) -> dict[str, Any]:
    """Give a call of the skill `echo`."""
    return {"skill": "echo", "arguments": list(arguments), **more}


def test_one_line_of_answer_a_call(confining: Desk) -> None:
    """Each has its line, its id, the whole result; standard input goes in; the exit code says that one failed."""
    ready(confining)
    write(confining, call("one", id="a"), "", call("two", "3", id=7), call("x", stdin="in ☃"))
    done = confining("batch", "calls.jsonl", "--ceiling", "ceiling.yaml", "--limit", "2")
    found = answers(done.stdout)
    assert [(one["line"], one["id"], one["ok"]) for one in found] == [
        (1, "a", True),
        (3, 7, False),
        (4, None, True),
    ]
    assert [one["result"]["exit_code"] for one in found] == [0, 3, 0]
    assert [one["result"]["stdout"]["text"] for one in found] == ["one\n", "two 3\n", "in ☃x\n"]
    assert {one["schema"] for one in found} == {"skillrun.batch/1"}
    assert done.returncode == 1
    assert done.stderr.endswith("skillrun: 3 calls: 2 ok, 1 failed\n")
    assert confining("batch", "calls.jsonl", "--shard", "1/4", "--ceiling", "ceiling.yaml").returncode == 0


WRONG = {
    "not json": ("batch-line", "the line is not JSON", 1),
    '{"skill": "echo"} x': ("batch-line", "extra data", 19),
    "[1]": ("batch-line", "the line is a list", None),
    '{"skill": 3}': ("batch-line", "`skill` is a number", None),
    "{}": ("batch-line", "`skill` is missing", None),
    '{"skill": "echo", "skil": 1}': ("batch-line", "`skil` is no part", None),
    '{"skill": "echo", "skill": "echo"}': ("batch-line", "stands twice", None),
    '{"skill": "echo", "arguments": "a"}': ("batch-line", "not a list of texts", None),
    '{"skill": "echo", "arguments": [1]}': ("batch-line", "not a list of texts", None),
    '{"skill": "echo", "arguments": ["\\u0000"]}': ("call-text", "NUL", None),
    '{"skill": "echo", "arguments": ["\\ud800"]}': ("call-text", "surrogate", None),
    '{"skill": "echo", "stdin": "\\ud800"}': ("batch-line", "surrogate", None),
    '{"skill": "echo", "timeout": NaN}': ("batch-line", "NaN", None),
    '{"skill": "echo", "timeout": 1e999}': ("batch-line", "`timeout` is inf", None),
    '{"skill": "echo", "timeout": true}': ("batch-line", "`timeout` is true or false", None),
    '{"skill": "echo", "timeout": 0}': ("batch-line", "above 0", None),
    '{"skill": "echo", "id": {}}': ("batch-line", "`id` is an object", None),
    '{"skill": "echo", "flags": {}}': ("batch-line", "`flags` is no part", None),
    '{"skill": "echo", "read": ["/etc"]}': ("batch-line", "`read` is no part", None),
    "[" * 100_000: ("batch-line", "not JSON", None),
    '{"skill": "nobody"}': ("skill-unknown", "nobody", None),
    '{"skill": "echo", "script": "no.sh"}': ("script-unknown", "no.sh", None),
}


def test_a_wrong_line_is_an_answer_with_its_place(confining: Desk) -> None:
    """Every kind of mistake names file, line and, in JSON, column; the calls between are all made."""
    ready(confining)
    lines: list[Any] = []
    for text in WRONG:
        lines += [text, call(f"after {len(lines)}")]
    write(confining, *lines)
    done = confining("batch", "calls.jsonl", "--ceiling", "ceiling.yaml")
    found = answers(done.stdout)
    assert [one["line"] for one in found] == list(range(1, len(lines) + 1))
    for one, (text, (rule, words, column)) in zip(found[::2], WRONG.items(), strict=True):
        problem = one["result"]["error"]
        assert problem["rule"] == rule, text[:60]
        assert words in problem["message"], text[:60]
        assert (one["ok"], one["result"]["termination"]) == (False, "refused")
        if rule in {"batch-line", "call-text"}:
            assert problem["path"].endswith("calls.jsonl")
            assert problem["line"] == one["line"]
            assert f"calls.jsonl:{one['line']}" in done.stderr
        if column is not None:
            assert problem["column"] == column
    assert all(one["ok"] for one in found[1::2])
    assert done.returncode == 1
    assert len((confining.here / "out/made").read_text().splitlines()) == len(WRONG)


def test_it_goes_on_where_it_stopped(confining: Desk) -> None:
    """A call that has an answer is not made again; half an answer at the end is none; a changed line is a new call."""
    ready(confining)
    write(confining, *(call(f"c{n}") for n in range(6)))
    words = ("batch", "calls.jsonl", "--ceiling", "ceiling.yaml", "--output", "answers.jsonl", "--limit", "1")
    assert confining(*words).returncode == 0
    output = confining.here / "answers.jsonl"
    kept = output.read_bytes().splitlines(keepends=True)
    output.write_bytes(b"".join(kept[:3]) + kept[3][:50])
    (confining.here / "out/made").unlink()
    done = confining(*words)
    assert done.returncode == 0
    assert "6 calls: 3 ok, 3 answered before" in done.stderr
    assert (confining.here / "out/made").read_text().split() == ["c3", "c4", "c5"]
    assert [one["line"] for one in answers(output.read_text())] == [1, 2, 3, 4, 5, 6]
    write(confining, *(call(f"c{n}") for n in range(5)), call("changed", "4"))
    assert confining(*words).returncode == 1
    assert (confining.here / "out/made").read_text().split()[3:] == ["changed"]
    assert confining(*words).returncode == 1, "a failure that was answered before is still one"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_in_the_middle(confining: Desk, number: signal.Signals) -> None:
    """Whatever stops it: nothing goes on, the answers so far are whole, and the same command makes the rest."""
    ready(confining)
    slow = confining.here / "skills/slow/scripts/main.sh"
    confining.skill("slow", ECHO.replace("exit", "sleep $3\nexit"), front=FRONT)
    assert slow.exists()
    calls = [{"skill": "slow", "arguments": [f"c{n}", "0", "0" if n < 3 else "30"]} for n in range(6)]
    write(confining, *calls)
    words = ("batch", "calls.jsonl", "--ceiling", "ceiling.yaml", "--output", "answers.jsonl", "--limit", "2")
    job = confining.start(*words)
    made, output = confining.here / "out/made", confining.here / "answers.jsonl"
    end = time.monotonic() + 30
    while time.monotonic() < end and not (made.exists() and len(made.read_text().split()) >= 5):
        time.sleep(0.02)
    job.send_signal(number)
    _, stderr = job.communicate(timeout=30)
    assert job.returncode == (-9 if number == signal.SIGKILL else 128 + number), stderr
    if number != signal.SIGKILL:
        assert "the same command goes on" in stderr
    found = answers(output.read_text())
    assert [one["line"] for one in found] == [1, 2, 3]
    slow.write_text(ECHO)
    assert confining(*words).returncode == 0
    assert Counter(one["line"] for one in answers(output.read_text())) == Counter(range(1, 7))
    if (
        number != signal.SIGKILL
    ):  # after that the launcher may still be ending them when the next batch begins
        assert Counter(made.read_text().split()).most_common()[-1][1] >= 1


@pytest.mark.slow
def test_shards_make_every_call_once(confining: Desk) -> None:
    """All shards together make all calls, no matter how many lines each has."""
    ready(confining)
    write(confining, *(call(f"c{n}") for n in range(7)), "broken")
    for part in range(1, 4):
        words = ("batch", "calls.jsonl", "--ceiling", "ceiling.yaml", "--shard", f"{part}/3")
        confining(*words, "--output", f"part-{part}.jsonl")
    found = [
        one["line"]
        for part in range(1, 4)
        for one in answers((confining.here / f"part-{part}.jsonl").read_text())
    ]
    assert sorted(found) == list(range(1, 9))
    assert sorted((confining.here / "out/made").read_text().split()) == [f"c{n}" for n in range(7)]
    for text in ("0/3", "4/3", "1", "1/0", "x/y", "-1/3"):
        done = confining("batch", "calls.jsonl", "--shard", text)
        assert (done.returncode, "error[batch-shard]" in done.stderr) == (2, True), text


@pytest.mark.parametrize("flag", ["--read", "--write", "--env", "--timeout", "--network"])
def test_no_flag_grants_anything(desk: Desk, flag: str) -> None:
    """A batch has the skills' requests and the operator's files, and no flag that widens them."""
    write(desk, call("x"))
    done = desk("batch", "calls.jsonl", flag, "/etc")
    assert done.returncode == 2
    assert "there is no option" in done.stderr


def test_arguments_grant_nothing(confining: Desk) -> None:
    """A path among the arguments of a call is not the operator's word, as it is when a person types it to `run`."""
    ready(confining)
    (confining.here / "secret.txt").write_text("hunter2")
    confining.skill("reader", '#!/bin/sh\ncat "$1"\n')
    assert "hunter2" in confining("run", "reader", "--", "secret.txt").stdout
    write(confining, {"skill": "reader", "arguments": [str(confining.here / "secret.txt")]})
    done = confining("batch", "calls.jsonl")
    assert "hunter2" not in done.stdout
    assert done.returncode == 1


def test_files_that_are_none(desk: Desk) -> None:
    """A missing file of calls, one of answers that holds something else, and one that is in use are exit code 2."""
    desk.skill("echo", ECHO)
    assert "error[batch-calls]" in desk("batch", "nothing.jsonl").stderr
    write(desk, call("x"))
    other = desk.here / "notes.txt"
    other.write_text("mine\n")
    done = desk("batch", "calls.jsonl", "--output", "notes.txt")
    assert (done.returncode, other.read_text()) == (2, "mine\n")
    assert "notes.txt:1" in done.stderr
    assert desk("batch", "calls.jsonl", "--output", "no/where.jsonl").returncode == 2
    with (desk.here / "busy.jsonl").open("w") as held:
        import fcntl

        fcntl.flock(held, fcntl.LOCK_EX)
        done = desk("batch", "calls.jsonl", "--output", "busy.jsonl")
    assert (done.returncode, "another batch" in done.stderr) == (2, True)


def test_calls_from_standard_input(confining: Desk) -> None:
    """`-` reads them as they come; an empty file is no call and no failure."""
    ready(confining)
    done = confining("batch", "-", "--ceiling", "ceiling.yaml", stdin=json.dumps(call("one")) + "\n")
    assert (done.returncode, len(answers(done.stdout))) == (0, 1)
    done = confining("batch", "-", stdin="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "skillrun: 0 calls: none\n")


def test_the_bar_is_for_terminals_only(confining: Desk) -> None:
    """A terminal sees how far it is; a file sees no control character."""
    ready(confining)
    write(confining, *(call(f"c{n}") for n in range(3)))
    words = ("batch", "calls.jsonl", "--ceiling", "ceiling.yaml", "--output", "a.jsonl")
    ours, theirs = pty.openpty()
    job = subprocess.Popen(
        confining.command(*words), cwd=confining.here, env=confining.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        pass
    assert job.wait(30) == 0
    assert b"3/3" in shown
    assert "\r" not in confining(*words, "--ceiling", "ceiling.yaml").stderr
    os.close(ours)


def test_a_line_without_end_costs_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a line that is too long no more than the bound is held; the next one is read as usual."""
    monkeypatch.setattr("skillrun.running.lines.LONGEST", 1_000)
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b'{"skill": "' + b"x" * 100_000 + b'"}\n{"skill": "echo"}\n')
    with path.open("rb") as file:
        first, second = read_lines(file, path)
    assert first.problem is not None
    assert "more than 1000 bytes" in first.problem.message
    assert (second.number, second.call is not None) == (2, True)


def test_every_key_is_told(desk: Desk) -> None:
    """The help names each key of a line."""
    shown = " ".join(desk("batch", "--help").stdout.split())
    assert all(f"`{key}`" in shown for key in KEYS)
