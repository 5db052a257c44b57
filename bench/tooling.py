"""What the tool layer costs: reading sources against `ast.parse` of the same files, and a call against a plain run.

SKILLRUN_CORPUS names a folder of public scripts; without it the scripts of the example skills are read.
"""

from __future__ import annotations

import ast
import os
import tempfile
import warnings
from pathlib import Path

from bench.measure import Row, in_turn
from skillrun.host import current_host
from skillrun.runner import Runner
from skillrun.tools.box import Toolbox
from skillrun.tools.infer.read import read_source

_ROOT = Path(__file__).resolve().parent.parent
_SCRIPT = """#!/usr/bin/env python3
import argparse, json
p = argparse.ArgumentParser()
p.add_argument("name")
p.add_argument("--times", type=int, default=1)
print(json.dumps(vars(p.parse_args())))
"""


def rows(rounds: int) -> list[Row]:
    """Compare the inference with parsing, and `toolbox.call` with `runner.run` of the same words."""
    return [_reading(rounds), _calling(rounds)]


def _reading(rounds: int) -> Row:
    folder = Path(os.environ.get("SKILLRUN_CORPUS", _ROOT / "skills"))
    sources = []
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8-sig", errors="replace")
        if "ArgumentParser" in source and _parses(source):
            sources.append(source)
    things = {
        "parse": lambda: [ast.parse(source) for source in sources],
        "read": lambda: [read_source(source, "python") for source in sources],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taken = in_turn(things, max(3, min(rounds, 3000 // len(sources))))
    return Row(
        f"reading {len(sources)} argparse scripts", "ast.parse of them", taken["read"] / taken["parse"], 3
    )


def _parses(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def _calling(rounds: int) -> Row:
    with tempfile.TemporaryDirectory() as top:
        skill = Path(top, "work", "skills", "demo")
        (skill / "scripts").mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\nname: demo\ndescription: A demo.\n---\n")
        (skill / "scripts" / "echo.py").write_text(_SCRIPT)
        work = Path(top, "work")
        with (
            Runner(workspace=work, ceiling="default", host=current_host()) as runner,
            Toolbox(runner=runner) as box,
        ):
            turn = box.turn()
            found = runner.find("demo")
            things = {
                "run": lambda: runner.run(found, "echo.py", ["--times=2", "x"]),
                "call": lambda: turn.call("demo__echo", {"name": "x", "times": 2}),
            }
            assert turn.call("demo__echo", {"name": "x", "times": 2}).structured == {"name": "x", "times": 2}
            taken = in_turn(things, rounds)
    return Row("toolbox.call of a script", "runner.run of the same words", taken["call"] / taken["run"], 1.15)
