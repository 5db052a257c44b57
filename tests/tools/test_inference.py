"""Inference: what is read from sources of many kinds, compared with what the libraries themselves say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import click  # noqa: TC002 - executed sources need it
import pytest
from compare import compare

from skillrun.tools.argv import words_of
from skillrun.tools.infer.describe import describe
from skillrun.tools.infer.read import SOURCE_LIMIT, read_script, read_source
from skillrun.tools.interface import UNREAD

# Each is a way in which public scripts build their parser; argparse says in a confined run what it comes to.
PARSERS = {
    "every kind": """
import argparse, pathlib
p = argparse.ArgumentParser(prog="x")
p.add_argument("src", type=pathlib.Path)
p.add_argument("rest", nargs="*", default=["a"])
p.add_argument("-n", "--number", type=int, default=3, choices=range(1, 5))
p.add_argument("--ratio", type=float, required=True)
p.add_argument("--truth", type=bool)
p.add_argument("-v", "--verbose", action="count", default=0)
p.add_argument("--quiet", action="store_true"); p.add_argument("--no-cache", dest="cache", action="store_false")
p.add_argument("--mode", choices=["a", "b"], default="a")
p.add_argument("--const", action="store_const", const=5); p.add_argument("--ac", action="append_const", const=5)
p.add_argument("--tag", action="append"); p.add_argument("--pair", nargs=2, action="append", type=int)
p.add_argument("--many", nargs="+", type=int); p.add_argument("--one", nargs=1); p.add_argument("--ext", action="extend", nargs="*")
p.add_argument("--maybe", nargs="?", const="c"); p.add_argument("--flag", action=argparse.BooleanOptionalAction, default=True)
p.add_argument("--hidden", help=argparse.SUPPRESS); p.add_argument("--version", action="version", version="1")
p.parse_args()
""",
    "a function and main": """
import argparse
DEFAULTS = {"host": "localhost", "ports": [1, 2]}
CHOICES = sorted({"b": 1, "a": 2})
def build():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default=DEFAULTS["host"])
    parser.add_argument("--kind", choices=CHOICES + ["z"])
    return parser
def main(argv=None):
    args = build().parse_args(argv)
    return 0
if __name__ == "__main__":
    raise SystemExit(main())
""",
    "groups": """
import argparse
p = argparse.ArgumentParser()
g = p.add_argument_group("io", "files")
g.add_argument("--input", required=True)
x = g.add_mutually_exclusive_group(required=True)
x.add_argument("--a", action="store_true"); x.add_argument("--b"); x.add_argument("c", nargs="?")
p.parse_known_args()
""",
    "sub-commands": """
import argparse
common = argparse.ArgumentParser(add_help=False)
common.add_argument("--log", default="info")
p = argparse.ArgumentParser()
p.add_argument("--root")
s = p.add_subparsers(dest="cmd")
def add(name, **kw):
    q = s.add_parser(name, parents=[common], **kw)
    q.add_argument("item")
    return q
for name in ["up", "down"]:
    add(name, help="go " + name).add_argument("--steps", type=int, default=1)
deep = s.add_parser("deep", aliases=["d"]).add_subparsers(dest="inner", required=True)
deep.add_parser("one").add_argument("--x")
deep.add_parser("two")
p.parse_args()
""",
    "a class": """
import argparse
from enum import Enum
class Colour(Enum):
    RED = "red"
    BLUE = "blue"
class App:
    LEVELS = ("low", "high")
    def __init__(self):
        self.parser = argparse.ArgumentParser(description=__doc__)
        self._options()
    def _options(self):
        self.parser.add_argument("--level", choices=self.LEVELS)
        self.parser.add_argument("--colour", choices=[c.value for c in Colour])
    def run(self):
        return self.parser.parse_args()
App().run()
""",
    "loops and keywords": """
from argparse import ArgumentParser as AP, REMAINDER
p = AP()
shared = dict(type=int, default=0)
for axis in "xyz":
    pass
for axis in ("x", "y"):
    p.add_argument(f"--{axis}", help=f"along {axis}", **shared)
for name, kind in [("w", float), ("h", int)]:
    p.add_argument("--" + name, type=kind)
for name in ["first", "second"]:
    if name == "first":
        p.add_argument("--only-first")
p.add_argument("command")
p.add_argument("words", nargs=REMAINDER)
p.parse_args()
""",
    "a subclass": """
import argparse, sys
class Loud(argparse.ArgumentParser):
    def error(self, message):
        sys.exit(message)
class Own(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        pass
p = Loud()
p.add_argument("--own", action=Own, nargs=2)
p.add_argument("file", type=argparse.FileType("r"))
p.set_defaults(own=None)
p.parse_args()
""",
    "set_defaults and constants": """
import argparse, os
SIZE = 2 * 1024
p = argparse.ArgumentParser()
p.add_argument("--size", type=int, default=SIZE)
p.add_argument("--name", default="a" "b")
p.add_argument("--later", default="x")
p.set_defaults(later="y")
p.parse_args()
""",
    "async": """
import argparse, asyncio
async def main():
    p = argparse.ArgumentParser()
    p.add_argument("url")
    try:
        with open("/dev/null") as f:
            p.add_argument("--retries", type=int, default=-1)
    finally:
        p.add_argument("--end", action="store_true")
    a = p.parse_args()
asyncio.run(main())
""",
}  # fmt: skip


def test_argparse_itself_agrees(tmp_path: Path) -> None:
    """Every way to build a parser is read as argparse builds it, defaults and choices included."""
    folder = tmp_path.resolve() / "parsers"
    folder.mkdir()
    files = []
    for name, source in PARSERS.items():
        files.append(folder / f"{name.replace(' ', '_')}.py")
        files[-1].write_text(source)
    for path, count, wrong, why in compare(files, folder):
        assert why is None, (path.name, why)
        assert count > 0
        assert wrong == [], path.name


@pytest.mark.slow
@pytest.mark.skipif(
    "SKILLRUN_CORPUS" not in os.environ, reason="SKILLRUN_CORPUS names no folder of public scripts"
)
def test_public_scripts_are_read_right() -> None:
    """Of the scripts below $SKILLRUN_CORPUS that argparse answers for, 98 % are right in every parameter."""
    folder = Path(os.environ["SKILLRUN_CORPUS"]).resolve()
    files = [
        path
        for path in sorted(folder.rglob("*.py"))
        if b"ArgumentParser" in path.read_bytes() and not path.name.startswith("test_")
    ]
    rows = [row for start in range(0, len(files), 100) for row in compare(files[start : start + 100], folder)]
    answered = [row for row in rows if row[3] is None]
    strict = sum(not row[2] for row in answered)
    # A default of the day or of the machine is left out of a schema on purpose; it is told, and is no wrong parameter.
    right = [row for row in answered if all("default unknown" in one for one in row[2])]
    parameters = sum(row[1] for row in answered)
    print(
        f"{len(answered)} of {len(rows)} answered, {parameters} parameters, {len(right)} right, {strict} with every default"
    )
    for path, _, wrong, _ in answered:
        if wrong:
            print(path, wrong[:4])
    assert len(right) >= 0.98 * len(answered)


CLICK = """
import click  # noqa: TC002 - executed sources need it
from enum import Enum
@click.group()
@click.option("--config", default="c.toml", help="A file")
def cli(config):
    "The whole."
@cli.command()
@click.argument("source")
@click.argument("targets", nargs=-1)
@click.option("-n", "--number", type=int, default=1, show_default=True, help="How many")
@click.option("--ratio", type=click.FloatRange(0, 1))
@click.option("--mode", type=click.Choice(["a", "b"]), required=True)
@click.option("--shout/--no-shout", default=False)
@click.option("--dry-run", is_flag=True)
@click.option("--tag", multiple=True)
@click.option("--point", nargs=2, type=float)
@click.option("-v", "--verbose", count=True)
@click.option("--secret", hidden=True)
def copy(**kwargs):
    "Copies."
@cli.command(name="list-all")
@click.argument("where", required=False, default=".")
def list_all(where):
    pass
if __name__ == "__main__":
    cli()
"""
TYPER = """
import typer
from enum import Enum
from typing import Annotated, List, Optional
app = typer.Typer()
class Colour(str, Enum):
    red = "red"
    blue = "blue"
@app.command()
def paint(name: str, times: int = 1, colour: Colour = Colour.red, loud: bool = False,
          tags: List[str] = typer.Option([], "--tag", help="Tags"),
          ratio: Annotated[Optional[float], typer.Option(help="R")] = None,
          extra: Annotated[str, typer.Argument()] = "x"):
    "Paints."
@app.command("wash")
def wash_it(what: Annotated[str, typer.Argument(help="What")], hot: bool = typer.Option(True, "--hot/--cold")):
    pass
if __name__ == "__main__":
    app()
"""


def commands_of(source: str, name: str) -> dict[str, click.Command]:
    """Execute a source that is ours and return its commands by path."""
    names: dict[str, Any] = {"__name__": "x"}
    exec(source, names)
    top = names[name]
    if name == "app":
        import typer

        top = typer.main.get_command(top)
    return dict(top.commands)


@pytest.mark.parametrize(("source", "name"), [(CLICK, "cli"), (TYPER, "app")])
def test_click_and_typer_agree(source: str, name: str) -> None:
    """Names, flags, types, choices, required, lists and flags for false, as the library has them after import."""
    if name == "app":
        pytest.importorskip("typer", reason="typer is not installed")
    commands = commands_of(source, name)
    found = {one.subcommand: one for one in read_source(source, "python").interfaces}
    assert {path[0] for path in found} == set(commands)
    for word, command in commands.items():
        ours = {one.name: one for one in found[word,].parameters if one.level == 1}
        theirs = {one.name: one for one in command.params if not getattr(one, "hidden", False)}
        for parameter in theirs.values():
            flag = next((one for one in parameter.opts if one.startswith("--")), None)
            match = [
                one for one in ours.values() if (one.flag == flag if flag else one.name == parameter.name)
            ]
            assert match, (word, parameter.name)
            [own] = match
            assert own.required == bool(parameter.required), parameter.name
            assert (own.flag is None) == (parameter.param_type_name == "argument")
            listed = parameter.nargs != 1 or getattr(parameter, "multiple", False)
            assert (own.schema["type"] == "array") == bool(listed), parameter.name
            choices = getattr(getattr(parameter, "type", None), "choices", None)
            if choices:
                assert own.schema["enum"] == [getattr(one, "value", one) for one in choices]
            if getattr(parameter, "secondary_opts", None):
                assert own.off == parameter.secondary_opts[0]
    if name == "app":
        [colour] = [one for one in found["paint",].parameters if one.name == "colour"]
        assert colour.schema == {"type": "string", "enum": ["red", "blue"], "default": "red"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"source": "-x", "targets": ["--a", "b c"], "mode": "a", "number": -3, "shout": True},
        {
            "source": "s",
            "mode": "b",
            "tag": ["--t", "u"],
            "point": [-1.5, 2.0],
            "verbose": 2,
            "dry_run": True,
            "shout": False,
            "ratio": 0.5,
        },
    ],
)
def test_what_click_receives_is_what_was_passed(arguments: dict[str, Any]) -> None:
    """The round trip through click's own parser."""
    [interface] = [one for one in read_source(CLICK, "python").interfaces if one.subcommand == ("copy",)]
    argv = words_of(interface, arguments).argv
    assert argv[0] == "copy"
    received = commands_of(CLICK, "cli")["copy"].make_context("copy", list(argv[1:])).params
    for name, value in arguments.items():
        got = received[name]
        assert (list(got) if isinstance(got, tuple) else got) == value, name


NODE = """#!/usr/bin/env node
// Prints its options.
import { parseArgs } from 'node:util';
const options = {
  file: { type: 'string', short: 'f' }, /* a comment, { */
  'dry-run': { type: 'boolean', default: false },
  tag: { type: "string", multiple: true }, verbose: { type: 'boolean', short: 'v', multiple: true },
  level: { type: 'string', default: 'low' },
};
const { values, positionals } = parseArgs({ options, allowPositionals: true });
console.log(JSON.stringify({ ...values, positionals }));
"""


def test_node_receives_what_was_passed(tmp_path: Path) -> None:
    """`util.parseArgs`: the options are read from the literal, and Node gets values that look like options."""
    [interface] = read_source(NODE, "node").interfaces
    assert [(one.name, one.flag, one.schema["type"]) for one in interface.parameters] == [
        ("file", "--file", "string"), ("dry_run", "--dry-run", "boolean"), ("tag", "--tag", "array"),
        ("verbose", "--verbose", "integer"), ("level", "--level", "string"), ("args", None, "array"),
    ]  # fmt: skip
    arguments = {"file": "--x", "dry_run": True, "tag": ["-a", ""], "verbose": 2, "args": ["--p", "q r"]}
    argv = words_of(interface, arguments).argv
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    path = tmp_path / "x.mjs"
    path.write_text(NODE)
    done = subprocess.run([node, path, *argv], capture_output=True, text=True, check=True)
    got = json.loads(done.stdout)
    assert got == {
        "file": "--x",
        "dry-run": True,
        "tag": ["-a", ""],
        "verbose": [True, True],
        "level": "low",
        "positionals": ["--p", "q r"],
    }


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('"""Converts files.\n\nMore.\n"""\n# Copyright X\n', "Converts files.\n\nMore."),
        ("#!/bin/sh\n# Copyright 2026 A\n# Licensed under MIT\n#\n# Converts files.\n# Fast.\nset -e\n", "Converts files.\nFast."),
        ("#!/usr/bin/env node\n/**\n * Converts files.\n * @license MIT\n */\n", None),
        ("#!/bin/bash\n# -*- coding: utf-8 -*-\n# shellcheck disable=SC2086\n# vim: ft=sh\n# Says hello\n", "Says hello"),
        ('# /// script\n# dependencies = ["x"]\n# ///\n# Works.\n', "Works."),
        ("#!/bin/sh\nset -e\n# not at the head\n", None),
        ("", None),
    ],
)  # fmt: skip
def test_descriptions_are_never_a_licence(source: str, text: str | None) -> None:
    """The docstring, else the comment at the head without the law and without what is for programs."""
    import ast

    tree = ast.parse(source) if source.startswith('"""') else None
    assert describe(source, tree) == text


def test_a_long_description_is_cut() -> None:
    """At most 1,000 characters and a mark."""
    assert len(describe("# " + "word " * 1000, None) or "") <= 1002


P = "import argparse\np = argparse.ArgumentParser()\n"
HOSTILE = {
    "deep": P + "p.add_argument('x', default=" + "(" * 150 + "1" + ")" * 150 + ")\np.parse_args()\n",
    "nested lists": P + "x = " + "[" * 190 + "]" * 190 + "\np.add_argument('--x', default=x)\np.parse_args()\n",
    "deep sum": P + "p.add_argument('--x', default=" + "+".join(["1"] * 20000) + ")\np.parse_args()\n",
    "huge product": P + "p.add_argument('--x', default='a' * 10**12, help='b' * 10**9 * 10**9)\np.parse_args()\n",
    "huge power": P + "p.add_argument('--x', default=9**9**9)\np.parse_args()\n",
    "huge range": P + "for i in range(10**15):\n    p.add_argument(f'--x{i}')\np.parse_args()\n",
    "huge lists": P + "a = [1]\nfor i in range(60):\n    a += a\np.add_argument('--x', choices=list(range(10**12)))\np.parse_args()\n",
    "doubling": P + "s = 'x'\n" + "s = s + s\n" * 200 + "p.add_argument('--x', default=s)\np.parse_args()\n",
    "replace": P + "s = 'x' * 60000\np.add_argument('--x', default=s.replace('x', s).replace('x', s).join([s] * 9))\np.parse_args()\n",
    "format": P + "p.add_argument('--x', default='{:>99999999999}'.format(1), help='%99999999999d' % 1)\np.parse_args()\n",
    "f-string": P + "p.add_argument('--x', default=f'{1:>99999999999}')\np.parse_args()\n",
    "recursion": P + "def f():\n    return f() + g()\ndef g():\n    p.add_argument('--y'); return f()\nf()\np.parse_args()\n",
    "itself": P + "a = a\nb = [b]\nc = d\nd = c\np.add_argument('--x', default=a, choices=b, help=c)\np.parse_args()\n",
    "calls": P + "".join(f"def f{n}():\n    p.add_argument('--a'); f{n + 1}(); f{n + 1}()\n" for n in range(30)) + "def f30(): pass\nf0()\np.parse_args()\n",
    "odd kinds": P + "p.add_argument('--x', nargs=-5, type=3, choices=7, action=[], default={}, help=4, dest=9)\np.add_argument()\np.add_argument(5)\np.add_argument('')\np.parse_args()\n",
    "parents": "import argparse\np = argparse.ArgumentParser(parents=5)\nq = argparse.ArgumentParser(parents=[p, p, 3])\nq.add_argument('--x')\nq.parse_args()\n",
    "sub of itself": P + "s = p.add_subparsers()\nfor i in range(100000):\n    s.add_parser(str(i)).add_argument('--x')\np.parse_args()\n",
    "many functions": P + "".join(f"def f{n}(): p.add_argument('--x')\n" for n in range(8000)) + "p.parse_args()\n",
    "many parsers": "import argparse\n" + "".join(f"p{n} = argparse.ArgumentParser()\n" for n in range(5000)) + "p1.parse_args()\n",
    "one long line": P + "# " + "a:" * 200000 + "\nx = " + "a" * 50000 + "\np.parse_args()\n",
    "methods": P + "class C:\n" + "".join(f" def f{n}(self): pass\n" for n in range(1900)) + " p.add_argument('x')\n" * 4000,
    "no python": "import argparse\n))) ArgumentParser add_argument\n",
    "escapes": P + "p.add_argument('--x', help='\\d\\w')\np.parse_args()\n",
    "click": "import click\n@click.command()\n@click.option(5, '--x', type=click.Choice(3))\n@click.argument()\ndef f(): pass\nf()\n",
    "typer": "import typer\napp = typer.Typer()\n@app.command()\ndef f(a: 'x[', b: List[List[List[int]]] = 5, *c, **d): pass\napp()\n",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_no_source_breaks_or_holds_up_its_reader(name: str) -> None:
    """Sources made to exhaust time, memory or the stack: a plain answer within seconds of work, and no warning."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reading = read_source(HOSTILE[name], "python")
    assert time.process_time() - began < 5
    assert 1 <= len(reading.interfaces) <= 128
    for interface in reading.interfaces:
        json.dumps(interface.schema())
        names = list(interface.schema()["properties"])
        assert len(names) == len(set(names)) == len(interface.parameters)
        assert sum(len(str(one.schema)) for one in interface.parameters) < 1 << 20


@pytest.mark.parametrize(
    "source",
    ["parseArgs({" * 1000, "parseArgs({ options: " + "{a:" * 5000, "import {parseArgs} from 'util';\nparseArgs({options: " + "[" * 100000,
     "import {parseArgs} from 'util'; const options = options; parseArgs({options})", "import {parseArgs} from 'util'; const a = {b}, b = {a}; parseArgs({options: a})",
     "import {parseArgs} from 'util'; parseArgs({" + "/* " * 100000,
     "".join(f"const c{n} = [c{n + 1}, c{n + 1}];\n" for n in range(5000)) + "import {parseArgs} from 'util'; parseArgs({options: c0})",
     "const b = {};\n" * 30000 + "import {parseArgs} from 'util'; parseArgs({options: {" + "a: b, " * 9000 + "}})"],
)  # fmt: skip
def test_no_javascript_breaks_its_reader(source: str) -> None:
    """The same for Node."""
    began = time.process_time()
    assert len(read_source(source, "node").interfaces) == 1
    assert time.process_time() - began < 5


def test_what_is_too_large_or_no_text_is_not_read(tmp_path: Path) -> None:
    """Over 1 MiB, with NUL bytes, a FIFO, or gone: `args` and `stdin`."""
    path = tmp_path / "x.py"
    path.write_bytes(PARSERS["groups"].encode() + b"#" * SOURCE_LIMIT)
    assert read_script(path, "python").interfaces == (UNREAD,)
    path.write_bytes(b"\0" + PARSERS["groups"].encode())
    assert read_script(path, "python").interfaces == (UNREAD,)
    path.unlink()
    assert read_script(path, "python").interfaces == (UNREAD,)
    os.mkfifo(path)
    assert read_script(path, "python").interfaces == (UNREAD,)


def test_what_could_not_be_read_leaves_room_for_words() -> None:
    """A parser that a foreign function adds to keeps what is known and takes `args` for the rest."""
    source = "import argparse\nfrom common import add\np = argparse.ArgumentParser()\np.add_argument('--x')\nadd(p)\np.parse_args()\n"
    [interface] = read_source(source, "python").interfaces
    assert [one.name for one in interface.parameters] == ["x", "args"]
    assert words_of(interface, {"x": "1", "args": ["--unknown", "-2"]}).argv == ("--x=1", "--unknown", "-2")


def test_stdin_is_offered_where_it_is_read() -> None:
    """A script that reads its standard input takes `stdin` besides its parameters."""
    source = "import argparse, sys\np = argparse.ArgumentParser()\np.add_argument('--x')\np.parse_args()\nprint(sys.stdin.read())\n"
    [interface] = read_source(source, "python").interfaces
    assert [one.name for one in interface.parameters] == ["x", "stdin"]
    words = words_of(interface, {"stdin": "text"})
    assert (words.argv, words.stdin) == ((), b"text")


def test_reading_does_not_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """No module of the source is imported: the table of modules is the same before and after."""
    before = set(sys.modules)
    read_source("import nonexistent_module_of_a_skill\n" + PARSERS["every kind"], "python")
    assert set(sys.modules) == before
