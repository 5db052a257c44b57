"""`--log`, `show --last` and `--verbose`: what is written down of a run, and what never is."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from skillrun import Call, Host, Runner, UsageError, log
from skillrun.redact import MARK, Redactor
from skillrun.report import records as module
from skillrun.report.records import Records, last

if TYPE_CHECKING:
    from pathlib import Path

    from desk import Desk

SECRETS = {
    "password=hunter2hunter2": "hunter2hunter2",
    "--token=abcdef123456": "abcdef123456",
    '{"api_key": "abcdef123456"}': "abcdef123456",
    "Authorization: Bearer abcdef123456": "abcdef123456",
    "https://ada:lovelace@example.com/x": "lovelace",
    "sk-abcdefghijklmnopqrstuvwx": "abcdefghijklmnopqrstuvwx",
    "sk-ant-api03-abcdefghijklmnopqrstuvwx": "abcdefghijklmnopqrstuvwx",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789": "abcdefghijklmnop",
    "github_pat_11AAAAAAA0abcdefghijklmnop": "abcdefghijklmnop",
    "glpat-abcdefghijklmnopqrst": "abcdefghijklmnop",
    "AKIAABCDEFGHIJKLMNOP": "ABCDEFGHIJKLMNOP",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv": "1234567890",
    "xoxb-123456789012-abcdefghij": "123456789012",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijk": "eyJzdWIi",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----": "MIIEabc",
    "-----BEGIN PRIVATE KEY-----\nMIIEabc": "MIIEabc",
}


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_are_known_by_their_shape(text: str) -> None:
    """Each line of `profiles/redact.yaml` takes out what it is for, alone and in the middle of other words."""
    for given in (text, f"before {text} after"):
        told = Redactor().text(given)
        assert SECRETS[text] not in told
        assert MARK in told


@pytest.mark.parametrize(
    "text",
    [
        "the token was refused",
        "keyboard: none",
        "/home/ada/secrets/list.txt",
        "sk-learn",
        "author: Ada",
        "a://b/c:d@e",
    ],
)
def test_words_that_are_no_secrets_stay(text: str) -> None:
    """A log that redacts half of what it says is no use."""
    assert Redactor().text(text) == text


def test_values_of_secret_variables_are_known() -> None:
    """The value of a variable whose name says that it is secret is taken out wherever it stands."""
    redactor = Redactor.of_environment({"DB_PASSWORD": "swordfish1", "HOME": "/home/ada", "PIN_KEY": "1234"})
    assert redactor.text("at /home/ada with swordfish1 and 1234") == f"at /home/ada with {MARK} and 1234"
    assert redactor.value({"a": ["swordfish1", 3, {"b": "x swordfish1"}]}) == {
        "a": [MARK, 3, {"b": f"x {MARK}"}]
    }


def test_a_run_is_written_down(confining: Desk) -> None:
    """A record has digest, grant, end and usage; no argument, no output, no secret; the file is the owner's alone."""
    confining.skill(
        "demo", '#!/bin/sh\necho "out-$1-$2"\necho err-text >&2\nexit 3\n', front='fs_read: ["./data"]\n'
    )
    words = ("run", "--log", "runs.jsonl", "demo", "--", "an-argument", "--password=hunter2")
    assert confining(*words).returncode == 3
    path = confining.home / ".state/skillrun/runs.jsonl"
    text = path.read_text()
    for gone in ("an-argument", "hunter2", "out-", "err-text"):
        assert gone not in text
    record = json.loads(text)
    assert record["schema"] == "skillrun.record/1"
    assert (record["termination"], record["exit_code"]) == ("exited", 3)
    assert record["argv"][-2:] == [MARK, MARK]
    assert record["skill"]["digest"].startswith("sha256:")
    assert "fs_read" in {item["capability"] for item in record["grant"]["granted"]}
    assert record["usage"]["cpu_s"] is not None
    assert record["stdout"] == {"bytes": len("out-an-argument---password=hunter2\n"), "truncated": False}
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_runs_that_never_were_are_written_down(confining: Desk) -> None:
    """A refusal and a mistake are records too."""
    confining.skill("demo", front='fs_read: ["/etc"]\n')
    assert confining("run", "--log", "runs.jsonl", "--strict", "demo").returncode == 125
    assert confining("run", "--log", "runs.jsonl", "nobody", "--", "argument").returncode == 125
    path = confining.home / ".state/skillrun/runs.jsonl"
    first, second = map(json.loads, path.read_text().splitlines())
    assert (first["termination"], first["error"]["rule"]) == ("refused", "strict")
    assert (second["termination"], second["error"]["rule"]) == ("refused", "skill-unknown")
    assert second["argv"] == [MARK]


@pytest.mark.slow
def test_the_latest_run_is_shown(confining: Desk) -> None:
    """`show --last` tells the latest one, of one skill if asked, for people and as JSON."""
    confining.skill("first", "#!/bin/sh\nexit 4\n")
    confining.skill("second")
    assert confining("show", "--last").returncode == 1
    for key in ("first", "second"):
        confining("run", "--log", "runs.jsonl", key, "--", "hidden")
    shown = confining("show", "--last")
    assert (shown.returncode, shown.stdout.split()[:2]) == (0, ["run", "second/main.sh"])
    assert "ended     exited with 0" in shown.stdout
    shown = confining("show", "--last", "first", "--json")
    assert json.loads(shown.stdout)["exit_code"] == 4
    assert confining("show", "--last", "nobody").returncode == 1
    assert confining("show").returncode == 2
    assert confining("show", "first", "--log", "x").returncode == 2


def test_a_hostile_record_is_shown_as_data(confining: Desk) -> None:
    """Whatever stands in the file, nothing of it reaches a terminal as it is, and nothing breaks."""
    path = confining.home / ".state/skillrun/runs.jsonl"
    path.parent.mkdir(parents=True)
    good = {"schema": "skillrun.record/1", "skill": {"key": "x\x1b[2J"}, "termination": "\u202e", "grant": {}}
    path.write_text(f"garbage\n{'[' * 50_000}\n[1]\n\0\n{json.dumps(good)}\n" + '{"schema": "skillrun.rec')
    shown = confining("show", "--last")
    assert shown.returncode == 0
    assert "\x1b" not in shown.stdout
    assert "\u202e" not in shown.stdout


@pytest.mark.parametrize("named", ["./runs.jsonl", "skills/runs.jsonl", "link.jsonl"])
def test_a_log_where_scripts_work_is_refused(desk: Desk, named: str) -> None:
    """The workspace and roots of skills are no place for a log, by whatever path."""
    desk.skill("demo")
    (desk.here / "inner").mkdir()
    if named.startswith("link"):
        (desk.home / "outside").symlink_to(desk.here / "inner")
        named = "../outside/runs.jsonl"
    done = desk("run", "--log", named if "/" in named else f"./{named}", "demo")
    assert done.returncode == 125
    assert "error[log-place]" in done.stderr
    assert not list(desk.here.rglob("*.jsonl"))
    assert desk("run", "--log", "/no/where/runs.jsonl", "demo", HOME="/no/home").returncode == 125


def test_no_script_reaches_the_log(confining: Desk) -> None:
    """Also with a grant for the folder that it lies in, it can be neither read nor changed."""
    folder = confining.home / "shared"
    folder.mkdir()
    confining.skill(
        "thief",
        f"#!/bin/sh\ncat {folder}/log.jsonl\necho forged >> {folder}/log.jsonl\nrm -f {folder}/log.jsonl\n",
    )
    words = ("run", "--log", f"{folder}/log.jsonl", "--write", str(folder), "thief")
    assert "schema" not in confining(*words).stdout
    done = confining(*words)
    assert "schema" not in done.stdout
    lines = (folder / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["skill"]["key"] for line in lines] == ["thief", "thief"]


def test_files_are_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full file becomes `.1`, three of them are kept, and `last` looks through all."""
    monkeypatch.setattr(module, "LARGEST", 2_000)
    kept = Records(tmp_path / "runs.jsonl", Redactor())
    for number in range(40):
        kept.record(Call(f"skill-{number}"), UsageError(module.error("x", f"number {number}")))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["runs.jsonl", "runs.jsonl.1", "runs.jsonl.2", "runs.jsonl.3"]
    assert all(path.stat().st_size <= 2_000 for path in tmp_path.iterdir())
    found = last(kept.path)
    assert found is not None
    assert found["error"]["message"] == "number 39"
    kept.path.unlink()
    found = last(kept.path)
    assert found is not None
    assert found["error"]["message"] != "number 39"
    assert not kept.problems


def test_many_writers_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads and processes that write and put aside at the same time: every line is whole and there once."""
    monkeypatch.setattr(module, "LARGEST", 20_000)
    monkeypatch.setattr(module, "KEPT", 50)
    path = tmp_path / "runs.jsonl"

    def write(who: int) -> None:
        kept = Records(path, Redactor())
        for number in range(25):
            kept.record(Call("demo"), UsageError(module.error("x", f"{who}-{number}")))
        assert not kept.problems

    def both(who: int) -> None:
        threads = [threading.Thread(target=write, args=(who + offset,)) for offset in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    pids = []
    for who in (100, 200, 300):
        pid = os.fork()
        if pid == 0:
            both(who)
            os._exit(0)
        pids.append(pid)
    both(0)
    assert all(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 for pid in pids)
    lines = [line for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    told = sorted(json.loads(line)["error"]["message"] for line in lines)
    expected = sorted(
        f"{who + offset}-{n}" for who in (0, 100, 200, 300) for offset in range(3) for n in range(25)
    )
    assert told == expected


def test_a_record_that_fails_fails_no_run(confining: Desk) -> None:
    """A full disk is a warning, and the script's exit code stays."""
    confining.skill("demo", "#!/bin/sh\necho fine\nexit 5\n")
    done = confining("run", "--log", "/dev/full", "demo")
    assert (done.returncode, done.stdout) == (5, "fine\n")
    assert "record-failed" in done.stderr


def test_verbose_tells_steps_and_no_secrets(confining: Desk) -> None:
    """Each step of the way is a line on standard error; standard output is the script's alone."""
    confining.skill("demo", "#!/bin/sh\necho $1\n")
    done = confining("run", "--verbose", "demo", "--", "an-argument", MY_TOKEN="swordfish1")
    assert done.stdout == "an-argument\n"
    for step in ("launcher started", "decided", "planned", "ended"):
        assert step in done.stderr
    assert "an-argument" not in done.stderr
    assert "swordfish1" not in done.stderr


def test_a_logger_is_told_and_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever configures `skillrun` hears each step; texts can't forge a line, and secrets are taken out."""
    with caplog.at_level(logging.DEBUG, "skillrun"):
        log.debug("step", name="a\nskillrun: forged \u202e", other="password=hunter2hunter2")
    assert caplog.messages == [f"step name='a\\nskillrun: forged \\u202e' other='password={MARK}'"]


def test_the_library_imports_no_logging() -> None:
    """A command that nobody listens to does not pay for it."""
    import subprocess

    program = "import sys, skillrun.cli.run, skillrun.runner; print('logging' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_runner_of_a_program_is_written_down(tmp_path: Path) -> None:
    """The library's own way: a recorder is given each call with what came of it, errors included."""
    told: list[tuple[Call, Any]] = []

    class Recorder:
        """Keeps what it is told."""

        path = tmp_path / "log.jsonl"

        def open(self) -> None:
            """Be ready."""

        def record(self, call: Call, ended: Any) -> None:
            """Keep it."""
            told.append((call, ended))

    (tmp_path / "work").mkdir()
    host = Host(temporary=tmp_path)
    with (
        Runner(workspace=tmp_path / "work", host=host, recorder=Recorder()) as runner,
        pytest.raises(UsageError),
    ):
        runner.run("nobody")
    assert [(call.skill, type(ended)) for call, ended in told] == [("nobody", UsageError)]
