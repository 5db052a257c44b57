"""`list` and `show`: exit codes, what is wrong is never silent, and the JSON shapes."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from desk import SKILLS

if TYPE_CHECKING:
    from pathlib import Path

    from desk import Desk

BROKEN = "---\nname: broken\ndescription: a: b\nnetwork: true\n---\n"


def broken(desk: Desk, root: str = "skills") -> Path:
    """Make a skill whose front matter does not parse, and that asks for the network behind the fault."""
    folder = desk.skill("broken", root=root)
    (folder / "SKILL.md").write_text(BROKEN)
    return folder


def test_list_is_0_when_all_is_well(desk: Desk) -> None:
    """Good skills: each is named, exit 0, nothing on standard error."""
    desk.skill("one")
    desk.skill("two")
    done = desk("list")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if line and not line.startswith(" ")] == [
        "one", "two", "2 skills, 2 scripts",
    ]  # fmt: skip


@pytest.mark.parametrize("words", [["list"], ["list", "skills"], ["list", "--skills", "skills"]])
def test_a_broken_skill_is_1_and_hides_no_other(desk: Desk, words: list[str]) -> None:
    """E-05: a file that can't be parsed has a finding of its own with its line, and the exit code says so."""
    broken(desk)
    desk.skill("good")
    done = desk(*words)
    assert done.returncode == 1
    assert "error[front-matter-" in done.stderr
    assert "--> skills/broken/SKILL.md:3:" in done.stderr
    assert "1 error" in done.stderr
    assert "\ngood\n" in done.stdout
    assert "broken  (invalid: does not run)" in done.stdout
    assert "network" not in done.stdout  # the request behind the fault is no request


@pytest.mark.parametrize("words", [["list", "no-such"], ["list", "empty"], ["list", "--skills", "no-such"]])
def test_nothing_found_is_no_good_answer(desk: Desk, words: list[str]) -> None:
    """E-04: a wrong or an empty root is 2 and says `no skills found`, with and without `--json`."""
    (desk.here / "empty").mkdir()
    for form in ([], ["--json"]):
        done = desk(*words, *form)
        assert done.returncode == 2
        assert "no skills found" in done.stderr
    assert json.loads(done.stdout)["skills"] == []


def test_one_missing_root_beside_a_good_one_is_2(desk: Desk) -> None:
    """E-04: a typo in one of several roots is an error, and the others are listed all the same."""
    desk.skill("good")
    done = desk("list", "skills", "skils")
    assert done.returncode == 2
    assert "error[root-missing]" in done.stderr
    assert "good" in done.stdout


def test_no_roots_at_all_says_so(desk: Desk) -> None:
    """Nobody named a root and there is none: an answer in words, and where to begin."""
    done = desk("list")
    assert done.returncode == 0
    assert "no skills found" in done.stderr
    assert "skillrun init" in done.stderr


def test_list_works_where_nothing_may_run(desk: Desk) -> None:
    """Looking is allowed in a home folder, which is refused as a workspace."""
    desk.skill("mine", root="../skills")
    done = desk("list", cwd=desk.home)
    assert done.returncode == 0
    assert "mine" in done.stdout


@pytest.mark.parametrize(
    "text",
    [b"", b"- a list\n", b"sandbox: {fs_read: 5}\n", b"sandbx: {}\n", b"\x7fELF\x00\xff\xfe"],
    ids=["empty", "list", "number", "unknown-key", "binary"],
)
@pytest.mark.parametrize("command", ["show", "run", "explain"])
def test_a_wrong_kind_of_ceiling_file(desk: Desk, text: bytes, command: str) -> None:
    """E-06: each is a configuration error with its file, an exit code of its own, and nothing runs."""
    desk.skill("demo", "#!/bin/sh\necho started\n")
    (desk.here / "ceiling.yaml").write_bytes(text)
    more = ["--read", "x"] if command == "explain" else []
    done = desk(command, "demo", "--ceiling", "ceiling.yaml", *more)
    assert done.returncode == (125 if command == "run" else 2)
    assert done.stdout == ""
    assert done.stderr.startswith("error[ceiling-")
    assert "--> ceiling.yaml" in done.stderr


def test_a_broken_file_of_the_operator_stops_everything(desk: Desk) -> None:
    """The operator's own file that does not parse grants nothing: no run, no show."""
    desk.skill("demo", "#!/bin/sh\necho started\n")
    config = desk.home / ".config" / "skillrun"
    config.mkdir(parents=True)
    (config / "skillrun.yaml").write_text("sandbox: [\n")
    assert (desk("run", "demo").returncode, desk("show", "demo").returncode) == (125, 2)


def test_show_of_an_invalid_skill_is_1(desk: Desk) -> None:
    """What can be shown is shown, what is wrong stands on standard error, and JSON has null for the rest."""
    broken(desk)
    done = desk("show", "skills/broken")
    assert done.returncode == 1
    assert "error[front-matter-" in done.stderr
    shown = json.loads(desk("show", "skills/broken", "--json").stdout)
    assert (shown["schema"], shown["valid"], shown["grant"], shown["request"]) == (
        "skillrun.show/1",
        False,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["show"], "skill"),
        (["show", "demi"], "did you mean `demo`?"),
        (["show", "demo", "other.sh"], "has no script `other.sh`"),
        (["show", "./nowhere"], "does not exist"),
        (["lst"], "did you mean `list`?"),
        (["list", "--jsno"], "did you mean `--json`?"),
        (["explain", "demo", "x"], "`--read`, `--write` or `--connect`"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_2(desk: Desk, words: list[str], told: str) -> None:
    """A wrong call of anything but `run` is 2, and says what to do."""
    desk.skill("demo")
    done = desk(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_no_command_shows_the_commands(desk: Desk) -> None:
    """Alone it is wrong usage, and tells what there is."""
    done = desk()
    assert done.returncode == 2
    assert "explain" in done.stderr


def test_list_json_has_the_shape(desk: Desk) -> None:
    """`list/1` with every member of DESIGN 13."""
    desk.skill("demo", "#!/usr/bin/env python3\n", front="fs_read: [./data]\n")
    desk.skill("demo", root="more")
    listed = json.loads(desk("list", "skills", "more", "--json").stdout)
    assert listed.keys() == {"schema", "roots", "skills", "problems"}
    assert [root["status"] for root in listed["roots"]] == ["ok", "ok"]
    first, second = listed["skills"]
    assert first.keys() >= {"key", "name", "path", "valid", "shadowed_by", "scripts", "request", "problems"}
    assert first["scripts"] == [
        {
            "name": "main.sh",
            "path": str(desk.here / "skills/demo/scripts/main.sh"),
            "interpreter": "python3",
            "tool": True,
            "runnable": True,
        }
    ]
    assert first["request"] == [
        {
            "capability": "fs_read",
            "value": "./data",
            "at": {"path": str(desk.here / "skills/demo/SKILL.md"), "line": 4, "column": 11},
        }
    ]
    assert (first["shadowed_by"], second["shadowed_by"]) == (None, first["path"])


def test_show_json_has_the_shape(confining: Desk) -> None:
    """`show/1` is the skill of `list/1` with digest, grant, policy, guarantees and tools; no Infinity anywhere."""
    confining.skill("demo", front="fs_read: [., /etc/hosts]\n")
    shown = json.loads(confining("show", "demo", "--json").stdout, parse_constant=pytest.fail)
    assert shown.keys() >= {"key", "request", "digest", "grant", "policy", "guarantees", "tools"}
    assert [item["asked"] for item in shown["grant"]["granted"] if item["capability"] == "fs_read"] == ["."]
    (refused,) = shown["grant"]["refused"]
    assert (refused["asked"], refused["asked_at"]["line"], refused["limit_at"]) == (
        "/etc/hosts",
        4,
        {"preset": "default"},
    )
    assert shown["guarantees"]["fs-write"] == "enforced"
    assert shown["policy"]["timeout_s"] == 60


def test_a_bare_name_that_is_also_a_folder_is_not_guessed(desk: Desk) -> None:
    """A cloned folder can't take the name of a skill; a path says which one is meant."""
    desk.skill("demo", "#!/bin/sh\necho from the root\n")
    desk.skill("demo", "#!/bin/sh\necho from here\n", root=".")
    done = desk("run", "demo", "--allow-unconfined")
    assert (done.returncode, done.stdout) == (125, "")
    assert "write `./demo`" in done.stderr
    assert desk("show", "./demo").returncode == 0
    assert desk("show", "skills/demo").returncode == 0


def test_a_bare_folder_that_is_no_key_is_a_folder(desk: Desk) -> None:
    """`skillrun show demo` where `demo` lies here and in no root."""
    desk.skill("demo", root=".")
    assert desk("show", "demo").returncode == 0


def test_names_that_are_not_utf8(desk: Desk) -> None:
    """A folder whose name is no UTF-8 is listed: shown with its bytes, percent-encoded in JSON."""
    name = os.fsdecode(b"caf\xe9")
    desk.skill("plain")
    (desk.here / "skills" / "plain").rename(desk.here / "skills" / name)
    assert "caf\\xe9" in desk("list").stdout
    listed = json.loads(desk("list", "--json").stdout)
    assert listed["skills"][0]["path"].endswith("/skills/caf%E9")


def test_the_example_skills_are_all_well(desk: Desk) -> None:
    """The shipped examples list without a problem."""
    done = desk("list", SKILLS)
    assert (done.returncode, done.stderr) == (0, "")
