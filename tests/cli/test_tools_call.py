"""`tools` and `call`: what a model is offered and what it reads, and what only the operator does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonschema
import pytest
from desk import SKILLS

from skillrun.tools.formats import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

    from desk import Desk

ECHO = """#!/usr/bin/env python3
import argparse, json, sys
p = argparse.ArgumentParser(description="Says \x1b[31mwhat\x1b[0m it was given.")
p.add_argument("name")
p.add_argument("--times", type=int, default=1)
a = p.parse_args()
print(json.dumps(vars(a)))
sys.exit(a.times if a.times > 1 else 0)
"""


@pytest.fixture
def skills(confining: Desk) -> Path:
    """Give the folder of a skill that repeats its arguments."""
    scripts = confining.here / "skills" / "demo" / "scripts"
    scripts.mkdir(parents=True)
    (scripts.parent / "SKILL.md").write_text("---\nname: demo\ndescription: A demo.\n---\n")
    (scripts / "echo.py").write_text(ECHO)
    return scripts.parent


def test_tools_as_a_table(desk: Desk) -> None:
    """The example skills: names, what each takes, what it says."""
    done = desk("tools", "--skills", SKILLS)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        "table-tools__convert\n  Convert a table from CSV to Markdown, JSON or CSV.\n  takes  table?: string, to?: markdown|json|csv"
        in done.stdout
    )
    assert done.stdout.endswith("6 tools\n")


def test_the_json_is_what_its_schema_says(desk: Desk) -> None:
    """`schemas/tools.schema.json` takes the tools of the examples, and refuses a name that no model API takes."""
    schema = json.loads((SKILLS.parent / "schemas" / "tools.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    made = json.loads(desk("tools", "--skills", SKILLS, "--json").stdout)
    validator.validate(made)
    made["tools"][0]["name"] = "a.b"
    assert not validator.is_valid(made)


def test_tools_as_json_and_in_each_format(confining: Desk, skills: Path) -> None:
    """`--json` is tools/1; every format is JSON; hostile text is escaped in the table and kept as data elsewhere."""
    made = json.loads(confining("tools", "--json").stdout)
    assert made["schema"] == "skillrun.tools/1"
    [one] = made["tools"]
    assert (one["name"], one["namespace"], one["script"], one["subcommand"], one["deferred"]) == (
        "demo__echo",
        "demo",
        "echo.py",
        None,
        False,
    )
    assert one["skill"] == str(skills)
    assert one["annotations"] == {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
    for name in FORMATS:
        assert "demo__echo" in json.dumps(json.loads(confining("tools", "demo", "--format", name).stdout))
    assert "\x1b" not in confining("tools").stdout


def test_call_writes_what_a_model_would_get(confining: Desk, skills: Path) -> None:
    """The text on standard output, who was run on standard error, 1 for an error and 2 for no such tool."""
    done = confining("call", "demo__echo", "--args", '{"name": "--x"}')
    assert (done.returncode, done.stdout) == (0, '{"name": "--x", "times": 1}\n')
    assert "skillrun: demo/echo.py" in done.stderr
    done = confining("call", "demo__echo", "--args", '{"name": "x", "times": 3}')
    assert (done.returncode, done.stdout) == (1, 'Error (exit 3): {"name": "x", "times": 3}\n')
    done = confining("call", "demo__echo", "--args", "{}")
    assert (done.returncode, done.stdout) == (1, "Error (demo__echo): invalid arguments: `name` is missing\n")
    done = confining("call", "demo_echo")
    assert (done.returncode, done.stdout) == (
        2,
        "Error (demo_echo): there is no tool `demo_echo`; similar ones are `demo__echo`\n",
    )
    assert skills.is_dir()


def test_arguments_from_a_file_and_from_standard_input(confining: Desk, skills: Path) -> None:
    """`@FILE` and `-`; what is no JSON or not there is a usage error."""
    (confining.here / "call.json").write_text('{"name": "a"}')
    assert confining("call", "demo__echo", "--args", "@call.json").stdout == '{"name": "a", "times": 1}\n'
    assert (
        confining("call", "demo__echo", "--args", "-", stdin='{"name": "b"}').stdout
        == '{"name": "b", "times": 1}\n'
    )
    for wrong, told in (("@none.json", "can't be read"), ("{name: a}", "are no JSON")):
        done = confining("call", "demo__echo", "--args", wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert told in done.stderr
    assert skills.is_dir()


def test_call_as_json_has_the_receipt(confining: Desk, skills: Path) -> None:
    """`--json`: the text, the data and the receipt of the run."""
    made = json.loads(confining("call", "demo__echo", "--args", '{"name": "x"}', "--json").stdout)
    assert (made["schema"], made["is_error"], made["structured"]) == (
        "skillrun.call/1",
        False,
        {"name": "x", "times": 1},
    )
    assert made["result"]["schema"] == "skillrun.result/1"
    assert made["result"]["script"]["path"] == str(skills / "scripts" / "echo.py")


def test_a_refusal_is_explained_to_the_operator_only(confining: Desk, skills: Path) -> None:
    """The reason stands on standard error; the text for the model says no more than that it was not started."""
    (skills / "SKILL.md").write_text(
        "---\nname: demo\ndescription: A demo.\nnetwork: [api.example.com:443]\n---\n"
    )
    (confining.here / "ceiling.yaml").write_text("sandbox: {network: [api.example.com:443]}\n")
    done = confining("call", "demo__echo", "--args", '{"name": "x"}', "--ceiling", "ceiling.yaml")
    assert (done.returncode, done.stdout) == (1, "Error (not started): the script was not started here\n")
    assert "api.example.com" in done.stderr


def test_a_skill_with_an_error_is_named_and_the_exit_code_says_so(confining: Desk, skills: Path) -> None:
    """`tools` lists the others and exits with 1."""
    bad = skills.parent / "bad"
    bad.mkdir()
    (bad / "SKILL.md").write_text(
        "---\nname: bad\ndescription: d\nmetadata: {skillrun: {scripts: {x.py: {paramters: {}}}}}\n---\n"
    )
    done = confining("tools")
    assert done.returncode == 1
    assert "demo__echo" in done.stdout
    assert "did you mean `parameters`?" in done.stderr
    assert confining("tools", "nobody").returncode == 2


def test_declared_access_is_part_of_what_is_asked_for(confining: Desk, skills: Path) -> None:
    """`list` and `show` name the parameter that gives access, and `show --json` has the tools of the skill."""
    entry = "{parameters: {file: {arg: 1, access: write}, name: {arg: 2}}}"
    front = f"---\nname: demo\ndescription: A demo.\nmetadata: {{skillrun: {{scripts: {{echo.py: {entry}}}}}}}\n---\n"
    (skills / "SKILL.md").write_text(front)
    assert "asks for  write the file in `file` of echo.py" in confining("list").stdout
    shown = json.loads(confining("show", "demo", "--json").stdout)
    asked = [one for one in shown["request"] if "argument" in one]
    assert [(one["capability"], one["argument"], one["at"]["line"]) for one in asked] == [
        ("fs_write", "echo.py file", 4)
    ]
    assert [(one["name"], one["access"]) for one in shown["tools"]] == [("demo__echo", {"file": "write"})]


def test_flags_of_the_operator_hold_for_one_call(confining: Desk, skills: Path) -> None:
    """`--read` of a call adds to what the script may do, as it does for `run`."""
    (skills / "scripts" / "echo.py").write_text("#!/bin/sh\nexec cat a.txt\n")
    (confining.here / "a.txt").write_text("content")
    assert confining("call", "demo__echo").returncode == 1
    done = confining("call", "demo__echo", "--read", "a.txt")
    assert (done.returncode, done.stdout) == (0, "content\n")


def test_a_long_result_is_written_whole(confining: Desk, skills: Path) -> None:
    """A file of it would be gone with the command that names it."""
    (skills / "scripts" / "long.py").write_text("#!/usr/bin/env python3\nprint('x' * 20_000)\n")
    assert confining("call", "demo__long").stdout == "x" * 20_000 + "\n"
