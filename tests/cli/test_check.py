"""`skillrun check`, `lock`, `diff` and `rule` as they are called: exit codes, outputs, a person at a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from desk import Desk

ENVIRONMENT = {
    "PATH": os.environ.get("PATH", ""),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def commit(folder: Path) -> None:
    """Commit everything that lies there."""
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", *words], cwd=folder, env=ENVIRONMENT, capture_output=True, check=True)


def at_a_terminal(desk: Desk, answer: str, *words: str) -> tuple[int, str]:
    """Run skillrun with a terminal, type an answer to its question, and return exit code and what was seen."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            desk.command(*words),
            cwd=desk.here,
            env=desk.environment(),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        seen, typed = b"", False
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:
                break
            if not data:
                break
            seen += data
            if b"type yes" in seen and not typed:  # what is typed before the question is no answer to it
                typed = True
                os.write(ours, answer.encode())
        return process.wait(30), seen.decode()
    finally:
        os.close(ours)


def test_exit_codes(desk: Desk) -> None:
    """0 clean, 1 findings, and notes alone are clean unless somebody says otherwise."""
    desk.skill("demo")
    assert desk("check").returncode == 0
    desk.skill("noted", front="version: 1\n")
    assert desk("check").returncode == 0
    assert desk("check", "--fail-on", "note").returncode == 1
    desk.skill("slow", front="timeout: 600\n")
    assert desk("check").returncode == 1
    assert desk("check", "--fail-on", "error").returncode == 0


@pytest.mark.parametrize(
    ("words", "form"),
    [
        (["no-such"], "plain"),
        (["empty"], "sarif"),
        ([], "github"),
        (["file"], "json"),
        (["skills", "no-such"], "concise"),
    ],
)
def test_nothing_checked_is_never_green(desk: Desk, words: list[str], form: str) -> None:
    """E-04: a missing root, an empty one, a typo beside a good one: exit code 3, in every format."""
    (desk.here / "empty").mkdir()
    (desk.here / "file").write_text("")
    if "skills" in words:
        desk.skill("demo")
    done = desk("check", *words, "--format", form)
    assert done.returncode == 3
    assert "no skills found" in done.stderr or "not every root" in done.stderr


def test_what_cannot_be_parsed_is_never_green(desk: Desk) -> None:
    """E-05: a broken file beside a good one is a finding of its own kind, also in SARIF."""
    desk.skill("good")
    folder = desk.skill("broken")
    (folder / "SKILL.md").write_text("---\nname: broken\ndescription: a: b\nnetwork: true\n---\n")
    done = desk("check", "--format", "sarif", "--fail-on", "error")
    assert done.returncode == 1
    results = json.loads(done.stdout)["runs"][0]["results"]
    assert [(one["ruleId"], one["level"]) for one in results] == [("skill-unreadable", "error")]


@pytest.mark.parametrize(
    "text", ["", "- a\n", "sandbox: {fs_read: 5}\n", "sandbx: {}\n", "\x00\x01", "sandbox: null\n"]
)
def test_a_wrong_ceiling_is_an_error_of_its_own(desk: Desk, text: str) -> None:
    """E-06: an empty, wrong, unknown or binary ceiling is exit code 2, neither clean nor findings."""
    desk.skill("demo")
    (desk.here / "ceiling.yaml").write_text(text)
    done = desk("check", "--ceiling", "ceiling.yaml")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr


def test_a_wrong_ceiling_elsewhere(desk: Desk) -> None:
    """The other commands take a wrong ceiling in the same way."""
    desk.skill("demo")
    (desk.here / "ceiling.yaml").write_text("- a\n")
    for words in (["lock"], ["diff", "./skills"]):
        done = desk(*words, "--ceiling", "ceiling.yaml")
        assert (done.returncode, done.stdout) == (2, ""), done.stderr


@pytest.mark.parametrize("words", [["--ceiling", "no-such"], ["--policy-from", "main"], ["--policy-from", "./no-such"],
                                   ["--format", "xml"], ["--policy-from", "main", "--write-baseline"]])  # fmt: skip
def test_wrong_usage(desk: Desk, words: list[str]) -> None:
    """A wrong call is exit code 2 and says what to do."""
    desk.skill("demo")
    done = desk("check", *words)
    assert done.returncode == 2
    assert "help:" in done.stderr


def test_own_configuration_does_not_count(desk: Desk) -> None:
    """A check says the same for everybody: what one person allows is no part of it."""
    desk.skill("demo", front="network: true\n")
    own = desk.home / ".config" / "skillrun"
    own.mkdir(parents=True)
    (own / "skillrun.yaml").write_text("sandbox: {network: true}\n")
    (desk.home / "skills" / "mine").mkdir(parents=True)
    (desk.home / "skills" / "mine" / "SKILL.md").write_text("broken")
    done = desk("check", "--json")
    assert {one["rule"] for one in json.loads(done.stdout)["findings"]} == {
        "request-refused",
        "unused-network",
        "broad-request",
    }


@pytest.mark.slow
def test_baseline_from_the_command_line(desk: Desk) -> None:
    """Findings are accepted once, new ones still count, and a partial scan is refused."""
    desk.skill("demo", front="timeout: 600\n")
    assert desk("check", "--write-baseline").returncode == 0
    done = desk("check")
    assert done.returncode == 0
    assert "1 in the baseline" in done.stderr
    desk.skill("other", front="timeout: 600\n")
    assert desk("check").returncode == 1
    done = desk("check", "skills/demo", "--write-baseline")
    assert (done.returncode, "other roots" in done.stderr) == (2, True)
    (desk.here / "mine.json").write_text("{}")
    assert desk("check", "--baseline", "mine.json").returncode == 2


def test_ignores_are_counted_and_shown(desk: Desk) -> None:
    """An ignored finding is named with its reason, and counted."""
    desk.skill("demo", front="timeout: 600 # skillrun: ignore[request-narrowed] CI is slow\n")
    done = desk("check")
    assert done.returncode == 0
    assert done.stdout == "ignored[request-narrowed]: skills/demo/SKILL.md:4:14: CI is slow\n\n"
    assert done.stderr == "1 skill and 1 script checked: nothing found (1 ignored)\n"


def test_suggest(desk: Desk) -> None:
    """A suggestion can be pasted as it is: with it the check is silent about what it named."""
    folder = desk.skill("demo", "#!/bin/sh\ncurl https://api.example.com/x > out.json\n")
    done = desk("check", "--suggest", "--json")
    (one,) = json.loads(done.stdout)["skills"]
    assert done.returncode == 0
    assert one["yaml"] == 'fs_write: ["./out.json"]\nnetwork: ["api.example.com:443"]'
    assert {part["key"]: [(e["line"], e["what"]) for e in part["evidence"]] for part in one["parts"]} == {
        "fs_write": [(2, "> out.json")],
        "network": [(2, "curl https://api.example.com/x")],
    }
    text = (folder / "SKILL.md").read_text().replace("description:", f"{one['yaml']}\ndescription:", 1)
    (folder / "SKILL.md").write_text(text)
    (desk.here / "c.yaml").write_text("sandbox: {fs_write: [./out.json], network: [api.example.com]}\n")
    after = json.loads(desk("check", "--json", "--ceiling", "c.yaml").stdout)["findings"]
    assert [found["rule"] for found in after] == ["undeclared-program"]
    assert desk("check", "--suggest").stderr == "0 of 1 skills declare nothing\n"


def test_lock_needs_a_person(desk: Desk) -> None:
    """Approving is refused without a terminal, does nothing without a yes, and then says what it does."""
    desk.skill("demo", front='fs_read: ["./data"]\n')
    assert desk("lock").returncode == 1
    done = desk("lock", "--approve", "demo", stdin="yes\n")
    assert (done.returncode, "needs a person at a terminal" in done.stderr) == (2, True)
    code, _ = at_a_terminal(desk, "no\n", "lock", "--approve", "demo")
    assert code == 1
    assert not (desk.here / "skillrun.lock").exists()
    code, seen = at_a_terminal(desk, "yes\n", "lock", "--approve", "demo")
    assert code == 0
    assert "${workspace}/data" in seen
    assert desk("lock").returncode == 0
    assert desk("check", "--locked").returncode == 0
    assert desk("lock", "--approve", "nope").returncode == 2


def test_lock_names_what_moved(desk: Desk) -> None:
    """`check --locked` and `lock` say which permission and which file is not as approved; approving ends it."""
    folder = desk.skill("demo")
    desk.skill("gone")
    at_a_terminal(desk, "yes\n", "lock", "--approve-all")
    (folder / "scripts" / "main.sh").write_text("#!/bin/sh\necho more\n")
    (folder / "SKILL.md").write_text("---\nname: demo\ndescription: For a test.\nfs_read: [./x]\n---\n")
    (desk.here / "skills" / "gone").rename(desk.here / "elsewhere")
    done = desk("check", "--locked", "--format", "concise")
    assert done.returncode == 1
    assert "lock-permission not as approved: fs_read gained ${workspace}/x" in done.stdout
    assert "`scripts/main.sh` changed" in done.stdout
    assert "lock-stale the lock has `skills/gone`" in done.stdout
    code, seen = at_a_terminal(desk, "yes\n", "lock", "--approve", "demo", "--approve", "skills/gone")
    assert code == 0
    assert "fs_read gained ${workspace}/x" in seen
    assert desk("check", "--locked").returncode == 0


def test_run_locked(confining: Desk) -> None:
    """A run is refused, with the reason, when the skill is not as approved; nothing of it has started."""
    desk = confining
    folder = desk.skill("demo", "#!/bin/sh\necho started\n")
    done = desk("run", "--locked", "demo")
    assert (done.returncode, done.stdout, "not-locked" in done.stderr) == (125, "", True)
    at_a_terminal(desk, "yes\n", "lock", "--approve", "demo")
    assert desk("run", "--locked", "demo").stdout == "started\n"
    (desk.here / "wide.yaml").write_text("sandbox: {timeout: 600}\n")
    done = desk("run", "--locked", "--ceiling", "wide.yaml", "demo")
    assert (done.returncode, done.stdout) == (125, "")
    assert "timeout widened from 60 to 600" in done.stderr
    (folder / "scripts" / "main.sh").write_text("#!/bin/sh\necho other\n")
    done = desk("run", "--locked", "demo")
    assert (done.returncode, done.stdout, "`scripts/main.sh` changed" in done.stderr) == (125, "", True)
    assert desk("run", "demo").stdout == "other\n"


@pytest.mark.slow
def test_diff(desk: Desk) -> None:
    """Revisions, folders and the tree as it lies here; 1 when some skill can do more, 3 when there is none."""
    folder = desk.skill("demo", front='fs_read: ["./a"]\n')
    commit(desk.here)
    assert (desk("diff", "main").returncode, desk("diff", "main").stderr) == (0, "no skill changed\n")
    (folder / "SKILL.md").write_text('---\nname: demo\ndescription: x\nfs_read: ["./a", "./b"]\n---\n')
    done = desk("diff", "main", "--color", "never")
    assert done.returncode == 1
    assert "+ gets fs_read: ${workspace}/b" in done.stdout
    assert desk("diff", "main", "--format", "markdown").stdout.startswith(
        "### Permissions of skills\n\n1 skill changed, 1 can do or ask for more."
    )
    commit(desk.here)
    assert json.loads(desk("diff", "main~1", "main", "--json").stdout)["summary"] == {"changed": 1, "more": 1}
    assert desk("diff", "main", "main~1").returncode == 0
    assert desk("diff", "nope").returncode == 2
    (desk.here / "empty").mkdir()
    assert desk("diff", "./empty", "./empty").returncode == 3
    assert desk("diff", "./skills", "./skills").returncode == 0
    done = desk("diff", "main", "--skills", "skills", "--skills", "no-such")
    assert (done.returncode, "no-such" in done.stderr) == (3, True)
    assert desk("lock", "skills", "no-such").returncode == 3


def test_rule(desk: Desk) -> None:
    """All rules in a phrase each; the page of one; the nearest name for a wrong one."""
    assert "exfiltration-pair  " in desk("rule").stdout
    assert "**What to do.**" in desk("rule", "flow").stdout
    done = desk("rule", "flwo")
    assert (done.returncode, "did you mean `flow`?" in done.stderr) == (2, True)


def test_the_policy_of_a_revision(desk: Desk) -> None:
    """`--policy-from` over the real command: the change that widens its own limit is seen."""
    folder = desk.skill("demo")
    (desk.here / "ceiling.yaml").write_text("sandbox: {timeout: 10}\n")
    commit(desk.here)
    (desk.here / "ceiling.yaml").write_text("sandbox: {timeout: 600}\n")
    (folder / "SKILL.md").write_text("---\nname: demo\ndescription: x\ntimeout: 600\n---\n")
    assert desk("check", "--ceiling", "ceiling.yaml").returncode == 0
    done = desk("check", "--ceiling", "ceiling.yaml", "--policy-from", "HEAD", "--format", "concise")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "ceiling.yaml: policy-changed this change changes `ceiling.yaml`, which is not believed before somebody has merged it",
        "skills/demo/SKILL.md:4:10: request-narrowed asks for `timeout: 600` and gets `10`",
    ]
