"""Sources that are made to hold up whoever reads them: a few hundred bytes that would take hours, or all of the memory."""

from __future__ import annotations

import json
import multiprocessing
import resource
from typing import TYPE_CHECKING

import pytest

from skillrun.tools.infer.read import Reading, read_source
from skillrun.tools.told import hidden, interface_told

if TYPE_CHECKING:
    from conftest import World

_PATIENCE = 20  # seconds; each takes well under one, and took minutes to years
_MEMORY = 2 << 30


def _python(*lines: str) -> str:
    return "\n".join(("import argparse", "p = argparse.ArgumentParser()", *lines, "p.parse_args()"))


def _doubled(name: str) -> list[str]:
    return [f"{name} = ['x']  # argparse", *[f"{name} = [{name}, {name}]  # argparse"] * 40]


_CLASSES = [f"class A{n}(A{n - 1}, A{n - 1}):\n    argparse = 1" for n in range(1, 40)]
_GROUPS = [
    f"@click.group()\ndef g{n}(): pass\ng{n}.add_command(g{n - 1}, 'a')\ng{n}.add_command(g{n - 1}, 'b')"
    for n in range(1, 40)
]
PYTHON = {
    "round to a power": _python("p.add_argument('--x', default=round(1, -99999999999))"),
    "largest of a range": _python("p.add_argument('--x', default=max(range(999999999999999)))"),
    "text of a doubled list": _python(*_doubled("a"), "p.add_argument('--x', default=str(a))"),
    "order of doubled lists": _python(
        *_doubled("a"), *_doubled("b"), "p.add_argument('--x', default=max(a, b))"
    ),
    "sorted doubled lists": _python(
        *_doubled("a"), *_doubled("b"), "p.add_argument('--x', choices=sorted([a, b]))"
    ),
    "long list of one long text": _python(
        "s = 'x' * 60000  # argparse", "p.add_argument('--x', nargs='*', default=[s for i in range(20000)])"
    ),
    "doubled parents": "import argparse\np = argparse.ArgumentParser()\np.add_argument('--x')\n"
    + "p = argparse.ArgumentParser(parents=[p, p])\n" * 40
    + "p.parse_args()",
    "bases by many ways": _python(
        "class A0(object):\n    argparse = 1", *_CLASSES, "A39.no.add_argument(argparse)"
    ),
    "roots by many ways": _python("class A0(object):\n    argparse = 1", *_CLASSES, "A39(argparse)"),
    "growing maps": _python(
        "d = {0: 0}  # argparse", *[f"d = {{**d, {n}: d}}  # argparse" for n in range(8000)]
    ),
    "many functions": _python(*[f"def a{n}(p):\n p.add_argument('x')" for n in range(6000)]),
    "many parsers": _python(
        "# " + "p1 " * 300000, *[f"p{n} = argparse.ArgumentParser()" for n in range(16000)]
    ),
    "lines in blocks of a text": _python("s = '''" + " def a\n argparse\n" * 20000 + "'''"),
    "words before colons": _python("s = '" + "a:" * 100000 + "'"),
    "f-strings": _python("p.add_argument('--x', default=f'" + "{p!r:{p}}" * 30000 + "')"),
    "f-strings in three quotes": _python(
        "p.add_argument('--x', default=rf'''\\'''" + "{p!r:{p}}'\n" * 30000 + "''')"
    ),
    "shared groups": "import click\n@click.group()\ndef g0(): pass\n" + "\n".join(_GROUPS),
    "typer parameters": "import typer\napp = typer.Typer()\n@app.command()\ndef main("
    + ", ".join(f"a{n}: str" for n in range(20000))
    + "): pass\napp()",
}
NODE = {
    "many names": "const {parseArgs} = require('util');"
    + "".join(f"let a{n}=[];" for n in range(60000))
    + "parseArgs({options:{}})",
    "many options": "const {parseArgs} = require('util'); parseArgs({options:{"
    + ",".join(f"a{n}:{{type:'string'}}" for n in range(2000))
    + "}})",
    "expressions in expressions": "const {parseArgs} = require('util');"
    + "".join(f"let a{n}=[f(" for n in range(9000))
    + ")]" * 9000
    + "parseArgs({options:{"
    + ",".join(f"b{n}:a{n}" for n in range(9000))
    + "}})",
    "names in names": "const {parseArgs} = require('util'); let x={"
    + ",".join(f"a{n}:y" for n in range(4000))
    + "}; let y={"
    + ",".join(f"a{n}:'s'" for n in range(4000))
    + "}; parseArgs({options:x})",
}


def _read(source: str, family: str) -> Reading:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    return read_source(source, family)


@pytest.mark.parametrize(
    ("source", "family"),
    [*((one, "python") for one in PYTHON.values()), *((one, "node") for one in NODE.values())],
    ids=[*PYTHON, *NODE],
)
def test_a_source_can_not_hold_up_its_reader(source: str, family: str) -> None:
    """Each is read within seconds and 2 GB, and what comes of it is bounded."""
    # In another process: a call that never returns to Python can't be interrupted here.
    with multiprocessing.get_context("fork").Pool(1) as pool:
        reading = pool.apply_async(_read, (source, family)).get(_PATIENCE)
    assert 1 <= len(reading.interfaces) <= 128
    for interface in filter(None, map(interface_told, reading.interfaces)):
        assert len(interface.parameters) <= 502
        assert len(str(interface.schema())) < 200_000


def test_the_options_of_a_long_node_script_are_found_by_their_name() -> None:
    """The rest of a script, however long, does not use up what may be read of the options."""
    source = "const {parseArgs} = require('util');\nconst options = {\n  file: {type: 'string'},\n};\n"
    source += "const {values} = parseArgs({options});\n" + "f(values, 1, 'x');\n" * 20_000
    (interface,) = read_source(source, "node").interfaces
    assert [one.name for one in interface.parameters] == ["file"]
    assert interface.complete


@pytest.mark.parametrize(
    "default", ["0x" + "f" * 5000, "1e999", "float('nan')", r"'\ud800'", r"'a\u202eb'", "['x' * 60000] * 2"]
)
def test_a_default_that_no_json_has_is_left_out(world: World, default: str) -> None:
    """One such number, or half a character, would make a model API refuse all the tools of a request."""
    script = _python(f"p.add_argument('--x', type=float, default={default}, help=r'of %(default)s')")
    choices = _python(f"p.add_argument('--x', type=float, choices=[1.0, {default}])")
    world.skill(
        "demo",
        scripts={"a.py": f"#!/usr/bin/env python3\n{script}", "b.py": f"#!/usr/bin/env python3\n{choices}"},
    )
    box = world.box()
    for provider in ("anthropic", "openai", "openai-responses", "gemini", "mcp"):
        text = json.dumps(box.turn().definitions(provider, strict=True), allow_nan=False, ensure_ascii=False)
        assert len(text.encode()) < 5_000
    for tool in box.tools:
        assert "default" not in tool.input_schema["properties"]["x"]
        assert "invalid arguments" not in tool.call({"x": 1.5}).text


def test_what_a_skill_says_hides_nothing_from_who_reads_it(world: World) -> None:
    """Tags, bidirectional marks and terminal codes in descriptions are shown by their number; long texts are cut."""
    source = r'''#!/usr/bin/env python3
"""Reads.  \U000e0041\u202e \x1b[2J"""
import argparse
p = argparse.ArgumentParser(description="D \u202e \x1b[2J \U000e0041 \ud800")
p.add_argument("--x", help="H\u200b" + "y " * 30000, choices=["a\u202e", "b"])
p.parse_args()
'''
    folder = world.skill("demo", front='license: "x"\n', scripts={"a.py": source})
    text = (folder / "SKILL.md").read_text().replace("The skill demo.", '"S \\u202e \\e ' + "z " * 5000 + '"')
    (folder / "SKILL.md").write_text(text)
    box = world.box()
    (tool,) = box.tools
    texts = [tool.about, str(tool.namespace_description), json.dumps(tool.input_schema, ensure_ascii=False)]
    for one in texts:
        assert len(one) <= 1_300
        assert not any(map(hidden, one.replace("\n", "")))
    assert r"D \u202e" in tool.about
    assert "enum" not in tool.input_schema["properties"]["x"]


def test_a_sub_command_that_can_not_be_told_takes_no_other_tool_with_it(world: World) -> None:
    """Two names that are one once NUL is a separator made the whole toolbox fail."""
    long = "L" * 60
    source = _python(
        "s = p.add_subparsers()",
        f"s.add_parser('{long}\\0b')",
        f"t = s.add_parser('{long}').add_subparsers()",
        "t.add_parser('b')",
    )
    world.skill("demo", scripts={"a.py": f"#!/usr/bin/env python3\n{source}"})
    (tool,) = world.tools().values()
    assert world.box().tools
    assert tool.subject.interface.subcommand == (long, "b")
