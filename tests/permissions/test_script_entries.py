"""`metadata.skillrun.scripts`: what is read, and that every mistake in it is an error with its place (law 3)."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from permission_scene import text_skill

from skillrun.errors import SkillError
from skillrun.permissions.request import read_request
from skillrun.permissions.script_entries import SCHEMA_KEYS, accesses

if TYPE_CHECKING:
    from permission_scene import Scene

    from skillrun.permissions.request import Request


def read(entry: str) -> Request:
    """Read the request of a skill that says this about `x.py`."""
    body = textwrap.indent(textwrap.dedent(entry).strip(), " " * 8)
    return read_request(
        text_skill(f"metadata:\n  skillrun:\n    scripts:\n      x.py:\n{body}\n", Path("/skill"))
    )


def test_everything_that_can_be_said() -> None:
    """Description, timeout, output, parameters with each key, sub-commands; null says nothing."""
    request = read(
        """
        description: Does it.
        timeout: 2.5
        output: json
        parameters:
          file: {description: A file, arg: 1, access: read}
          pages: {type: array, items: {type: integer}, arg: --page, repeat: true, required: false}
          loud: {type: boolean, false_arg: --quiet}
          level: {type: integer, default: 3, minimum: 1}
          inner: {type: object, properties: {a: {type: string}}, required: [a], arg: stdin}
        """
    )
    assert request.problems == ()
    [entry] = request.entries
    assert (entry.description, entry.timeout, entry.output) == ("Does it.", 2.5, "json")
    file, pages, loud, level, inner = entry.parameters or ()
    assert (file.schema, file.arg, file.access, file.required) == (
        {"description": "A file", "type": "string"},
        1,
        "read",
        True,
    )
    assert (pages.arg, pages.repeat, pages.required) == ("--page", True, False)
    assert (loud.required, loud.false_arg, loud.arg) == (False, "--quiet", None)
    assert (level.required, level.schema["default"]) == (False, 3)
    assert (inner.required, inner.schema["required"], inner.arg) == (True, ["a"], "stdin")
    assert [(script, one.name) for script, one in accesses(request.entries)] == [("x.py", "file")]
    assert read("parameters:\ndescription:\n").entries[0].parameters is None
    subs = read("subcommands: {add: {description: Adds}, list: }").entries[0].subcommands
    assert [(one.name, one.description) for one in subs] == [("add", "Adds"), ("list", None)]


@pytest.mark.parametrize(
    ("entry", "told", "advice"),
    [
        ("paramters: {}", "`scripts.x.py.paramters` is not a key", "did you mean `parameters`?"),
        ("cpu: 1", "`scripts.x.py.cpu` is not a key", "the keys are description"),
        ("timeout: 5s", "`scripts.x.py.timeout` is the text `5s`", "a number of seconds"),
        ("output: xml", "`scripts.x.py.output` is the text `xml`", "`scripts.x.py.output: text`"),
        ("description: 5", "is the number `5`", "a text"),
        ("parameters: [a]", "`scripts.x.py.parameters` is a list", "a map"),
        ("parameters: {a-b: {}}", "can't be the name of a parameter", "letters, digits"),
        ("parameters: {tool_call: {}}", "can't be the name of a parameter", "`tool_call` is taken"),
        (
            "parameters: {a: string}",
            "`scripts.x.py.parameters.a` is the text `string`",
            "{type: string, arg: 1}",
        ),
        (
            "parameters: {a: {typ: string}}",
            "`scripts.x.py.parameters.a.typ` is not a key",
            "did you mean `type`?",
        ),
        ("parameters: {a: {type: text}}", "is no type of JSON Schema", "write one of string"),
        ("parameters: {a: {type: [string, 'null']}}", "is no type of JSON Schema", "write one of string"),
        (
            "parameters: {a: {$ref: 'https://x.example/s'}}",
            "`scripts.x.py.parameters.a.$ref` is not a key",
            "the keys are",
        ),
        ("parameters: {a: {type: array, items: {$ref: '#'}}}", "uses `$ref`", "leave it out"),
        ("parameters: {a: {minimum: low}}", "is no JSON Schema", "json-schema.org"),
        (
            "parameters: {a: {arg: 0}}",
            "`scripts.x.py.parameters.a.arg` is the number `0`",
            "a position from 1",
        ),
        ("parameters: {a: {arg: true}}", "is a boolean", "a position from 1"),
        ("parameters: {a: {arg: file}}", "is the text `file`", "a flag such as"),
        ("parameters: {a: {arg: '--x y'}}", "is the text `--x y`", "a flag such as"),
        ("parameters: {a: {arg: 1}, b: {arg: 1}}", "`b` and `a` are both given as `1`", "give each its own"),
        ("parameters: {a: {arg: --a=}, b: {arg: --a}}", "both given as `--a`", "give each its own"),
        ("parameters: {a: {arg: 2}}", "positions have a gap before 2", "count them from 1"),
        ("parameters: {a: {repeat: true}}", "has `repeat` and is no list", "type: array"),
        ("parameters: {a: {false_arg: --no-a}}", "is the flag for false of a boolean", "false_arg"),
        ("parameters: {a: {type: integer, access: read}}", "has an `access` and is no path", "type: string"),
        ("parameters: {a: {access: execute}}", "is the text `execute`", "access: read"),
        (
            "parameters: {a: {}}\nsubcommands: {b: }",
            "has both `parameters` and `subcommands`",
            "give each sub-command",
        ),
        ("subcommands: {'a b': {}}", "can't be a sub-command", "the one word"),
        (
            "subcommands: {a: {timeout: 5}}",
            "`scripts.x.py.subcommands.a.timeout` is not a key",
            "the keys are description",
        ),
        ("subcommands: [a]", "is a list", "a map"),
    ],
)
def test_a_mistake_is_an_error_with_its_place(entry: str, told: str, advice: str) -> None:
    """Each names the key, says what to write, and stands in the file; nothing of the skill runs then."""
    request = read(entry)
    assert not request.valid
    problem = request.problems[0]
    assert told in problem.message
    assert advice in (problem.help or "")
    assert problem.at is not None
    assert problem.at.line is not None
    assert problem.at.line >= 5


def test_a_wrong_entry_runs_nothing(scene: Scene) -> None:
    """The decision itself refuses, so no command and no tool gets past it."""
    with pytest.raises(SkillError):
        scene.grant("metadata: {skillrun: {scripts: {x.py: {parameters: {a: {typ: string}}}}}}\n")


def test_keywords_are_json_schema_of_2020_12() -> None:
    """Every keyword that is let through is one of the meta-schema, so a typing error is never a keyword."""
    from jsonschema import Draft202012Validator

    known = set()
    for part in Draft202012Validator.META_SCHEMA["allOf"]:
        name = part["$ref"].rpartition("/")[2]
        from jsonschema_specifications import REGISTRY

        known |= set(REGISTRY.contents(f"https://json-schema.org/draft/2020-12/meta/{name}")["properties"])
    assert set(SCHEMA_KEYS) <= known
