"""Explaining: the decision about one path or endpoint, the rule that makes it, and the lines behind it (law 6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from permission_scene import DIGEST, Scene

from skillrun.permissions.explain import Access, Answer, Decision, explain_endpoint, explain_path

Ask: TypeAlias = Callable[..., Answer]
CEILING = 'sandbox:\n  fs_read: ["${workspace}/in"]\n  fs_write: ["${workspace}/out"]\n  deny: [hidden]\n  network: [a.com, "*.b.org:80"]\n'
FRONT = "fs_read: ['.']\nfs_write: [out/x, /etc]\nnetwork: [a.com, c.org]"


@pytest.fixture
def ask(scene: Scene) -> Ask:
    """Ask about one path of a run with the usual ceiling and request."""
    scene.operator(CEILING)
    grant = scene.grant(FRONT)
    return lambda target, access=Access.READ, **more: explain_path(grant, scene.place, target, access, **more)


def lines(answer: Answer) -> list[tuple[str, int | None]]:
    """Return file name and line of every place behind an answer."""
    return [(at.path.name if at.path else str(at), at.line) for at in answer.at]


@pytest.mark.parametrize(
    ("target", "access", "decision", "rule"),
    [
        ("in/a", Access.READ, Decision.ALLOWED, "granted"),
        ("in/a", Access.WRITE, Decision.DENIED, "not-asked"),
        ("out/x", Access.WRITE, Decision.ALLOWED, "granted"),
        ("out/x", Access.READ, Decision.ALLOWED, "granted"),
        ("out/y", Access.READ, Decision.ALLOWED, "granted"),
        ("out/y", Access.WRITE, Decision.DENIED, "not-asked"),
        ("in/hidden/z", Access.READ, Decision.DENIED, "deny"),
        ("in/.env", Access.READ, Decision.DENIED, "deny"),
        ("other", Access.READ, Decision.DENIED, "ceiling"),
        ("/etc/passwd", Access.WRITE, Decision.DENIED, "ceiling"),
        ("/usr/lib/x", Access.READ, Decision.DENIED, "not-asked"),
        ("in/../other", Access.READ, Decision.DENIED, "ceiling"),
    ],
)
def test_each_path_has_its_rule(ask: Ask, target: str, access: Access, decision: Decision, rule: str) -> None:
    """Allowed, denied, cut by the ceiling, or never asked for: each is told apart."""
    answer = ask(target, access)
    assert (answer.decision, answer.rule) == (decision, rule)
    assert answer.reason
    assert answer.target == target


def test_the_lines_behind_an_answer(ask: Ask) -> None:
    """Who asked comes first, then what limits; a deny names its own line; a secret the shipped list."""
    assert lines(ask("in/a")) == [("SKILL.md", 2), ("skillrun.yaml", 2)]
    assert lines(ask("out/x", Access.WRITE)) == [("SKILL.md", 3), ("skillrun.yaml", 3)]
    assert lines(ask("other")) == [("SKILL.md", 2), ("skillrun.yaml", 2)]
    assert lines(ask("in/hidden")) == [("skillrun.yaml", 4)]
    assert lines(ask("in/.env")) == [("preset secrets", None)]
    assert lines(ask("/usr/lib/x")) == []


def test_the_answer_is_about_the_physical_path(scene: Scene) -> None:
    """A link is followed before it is judged, and one that leads nowhere is denied."""
    scene.operator(CEILING)
    scene.write("home/work/in/real")
    (scene.workspace / "alias").symlink_to("in/real")
    (scene.workspace / "in/gone").symlink_to("none")
    grant = scene.grant(FRONT)
    answer = explain_path(grant, scene.place, "alias", Access.READ)
    assert (answer.decision, answer.resolved) == (Decision.ALLOWED, str(scene.workspace / "in/real"))
    assert explain_path(grant, scene.place, "in/gone", Access.READ).rule == "leads-nowhere"


def test_what_a_run_has_by_itself(ask: Ask, scene: Scene) -> None:
    """The skill's folder is readable and never writable, scratch is both, and a policy adds its own reads."""
    assert (ask(str(scene.skill / "a")).decision, ask(str(scene.skill / "a")).rule) == (
        Decision.ALLOWED,
        "skill-folder",
    )
    assert ask(str(scene.skill / "a"), Access.WRITE).decision is Decision.DENIED
    assert ask(str(scene.top / "scratch/x"), Access.WRITE).rule == "scratch"
    policy = {Path("/usr"): "the interpreter's prefix"}
    answer = ask("/usr/lib/x", policy=policy)
    assert (answer.decision, answer.rule, answer.reason) == (
        Decision.ALLOWED,
        "policy",
        "the interpreter's prefix",
    )
    assert ask("/usr/lib/x", Access.WRITE, policy=policy).decision is Decision.DENIED


def test_an_unconfined_run_may_do_everything(scene: Scene) -> None:
    """The answer says why nothing is denied."""
    scene.operator("sandbox: {enabled: false}\n")
    answer = explain_path(scene.grant(""), scene.place, "/etc/shadow", Access.WRITE)
    assert (answer.decision, answer.rule) == (Decision.ALLOWED, "unconfined")
    scene.operator(f'trusted: [{{skill: ~/skills/demo, digest: "{DIGEST}"}}]\n')
    answer = explain_endpoint(scene.grant("trust: core"), "a.com")
    assert (answer.rule, lines(answer)) == ("unconfined", [("SKILL.md", 2), ("skillrun.yaml", 1)])


@pytest.mark.parametrize(
    ("target", "decision", "rule"),
    [
        ("a.com", Decision.ALLOWED, "granted"),
        ("A.com.:443", Decision.ALLOWED, "granted"),
        ("a.com:80", Decision.DENIED, "ceiling"),
        ("c.org", Decision.DENIED, "ceiling"),
        ("127.1", Decision.UNKNOWN, "no-host"),
    ],
)
def test_each_endpoint_has_its_rule(scene: Scene, target: str, decision: Decision, rule: str) -> None:
    """Hosts are judged by the rules of the lists; what is no host has no answer."""
    scene.operator(CEILING)
    answer = explain_endpoint(scene.grant(FRONT), target)
    assert (answer.decision, answer.rule, answer.access) == (decision, rule, Access.CONNECT)


def test_lines_behind_an_endpoint(scene: Scene) -> None:
    """The list and the request that let it through, also where `true` was cut to the list; nothing where nobody asked."""
    scene.operator(CEILING)
    assert lines(explain_endpoint(scene.grant(FRONT), "a.com")) == [("SKILL.md", 4), ("skillrun.yaml", 5)]
    answer = explain_endpoint(scene.grant("network: true"), "x.b.org:80")
    assert (answer.decision, lines(answer)) == (Decision.ALLOWED, [("SKILL.md", 2), ("skillrun.yaml", 5)])
    assert explain_endpoint(scene.grant(""), "a.com").rule == "not-asked"
