"""`skillrun explain`: the decision, the rule behind it, the places, and an exit code for each answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from desk import Desk


@pytest.fixture
def asking(desk: Desk) -> Desk:
    """Give a desk with a skill that asks for reading everything and writing `out`, under a ceiling with a deny line."""
    desk.skill("demo", front="fs_read: [.]\nfs_write: [./out, /srv/shared]\nnetwork: true\n")
    (desk.here / "ceiling.yaml").write_text(
        'sandbox:\n  fs_read: ["${workspace}"]\n  fs_write: ["${workspace}"]\n  deny: [private]\n  network: [api.example.com]\n'
    )
    return desk


@pytest.mark.parametrize(
    ("words", "code", "decision", "rule"),
    [
        (["--read", "data/x"], 0, "allowed", "granted"),
        (["--write", "out/x"], 0, "allowed", "granted"),
        (["--write", "data/x"], 1, "denied", "not-asked"),
        (["--read", "private/x"], 1, "denied", "deny"),
        (["--read", ".env"], 1, "denied", "deny"),
        (["--read", "/etc/shadow"], 1, "denied", "not-asked"),
        (["--write", "/srv/shared/x"], 1, "denied", "ceiling"),
        (["--read", "/usr/lib"], 0, "allowed", "policy"),
        (["--write", "/dev/null"], 0, "allowed", "policy"),
        (["--read", "skills/demo/SKILL.md"], 0, "allowed", "skill-folder"),
        (["--write", "skills/demo/SKILL.md"], 1, "denied", "skill-folder"),
        (["--connect", "api.example.com:443"], 0, "allowed", "granted"),
        (["--connect", "api.example.com:80"], 1, "denied", None),
        (["--connect", "https://x"], 4, "unknown", "no-host"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_each_answer_has_its_rule_and_exit_code(
    asking: Desk, words: list[str], code: int, decision: str, rule: str | None
) -> None:
    """0 allowed, 1 denied, 4 unknown, with the rule that makes it, for people and as JSON alike."""
    told = asking("explain", "demo", "--ceiling", "ceiling.yaml", *words)
    assert told.returncode == code, told.stderr
    assert told.stdout.startswith(f"{decision}: {words[0].lstrip('-')} ")
    asked = asking("explain", "demo", "--ceiling", "ceiling.yaml", *words, "--json")
    (answer,) = json.loads(asked.stdout)["answers"]
    assert (asked.returncode, answer["decision"], answer["access"]) == (code, decision, words[0].lstrip("-"))
    assert rule is None or answer["rule"] == rule


def test_a_cut_names_both_places(asking: Desk) -> None:
    """A denial by the ceiling shows the line that asked and the line that limits."""
    done = asking("explain", "demo", "--ceiling", "ceiling.yaml", "--write", "/srv/shared")
    assert "skills/demo/SKILL.md:5:19" in done.stdout
    assert "ceiling.yaml:3:3" in done.stdout


def test_one_denial_outweighs_the_rest(asking: Desk) -> None:
    """Several targets: one line each, and 1 when any is denied."""
    done = asking("explain", "demo", "--read", "data", "/etc/shadow", "--json")
    assert [answer["decision"] for answer in json.loads(done.stdout)["answers"]] == ["allowed", "denied"]
    assert done.returncode == 1


def test_targets_are_taken_from_where_the_caller_stands(asking: Desk) -> None:
    """A relative target is the caller's, whatever the workspace is."""
    (asking.here / "below").mkdir()
    done = asking("explain", str(asking.here / "skills/demo"), "--workspace", "..", "--read", "x", "--json",
                  cwd=asking.here / "below")  # fmt: skip
    (answer,) = json.loads(done.stdout)["answers"]
    assert answer["resolved"] == str(asking.here / "below" / "x")


def test_what_a_run_keeps_away_is_denied(confining: Desk) -> None:
    """Law 6: a path inside a write grant that the policy protects is answered as the run would."""
    confining.skill("demo", '#!/bin/sh\necho x > "$1"\n', front="fs_write: [.]\n")
    (confining.here / ".git" / "hooks").mkdir(parents=True)
    (confining.here / "wide.yaml").write_text('sandbox: {fs_write: ["${workspace}"]}\n')
    for target, allowed in ((".git/hooks/post-commit", False), ("plain.txt", True)):
        answered = confining("explain", "demo", "--ceiling", "wide.yaml", "--write", target).returncode == 0
        ran = confining("run", "demo", "--ceiling", "wide.yaml", "--", target).returncode == 0
        assert (target, answered, ran) == (target, allowed, allowed)
