"""Discovery over thousands of skills, against reading the same files and parsing their YAML with the C loader."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from bench.measure import Row, in_turn

_FRONT = """---
name: skill-{n}
description: >-
  Converts table number {n} from one format to another,
  with columns picked and rows filtered.
license: MIT
metadata:
  version: "1.{n}"
  author: somebody
fs_read: ["./data", "./in-{n}"]
fs_write: ["./out"]
network: false
timeout: 30
---
# Skill {n}

Some words about it.
"""


def make(root: Path, count: int) -> None:
    """Write skills."""
    for n in range(count):
        folder = root / f"group-{n // 500}" / f"skill-{n}"
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(_FRONT.format(n=n))
        (folder / "scripts" / "run.py").write_text("#!/usr/bin/env python3\nprint('hello')\n")


_FLOOR = """
import os, sys, yaml
for folder, folders, files in os.walk(sys.argv[1]):
    if "SKILL.md" in files:
        text = open(os.path.join(folder, "SKILL.md"), encoding="utf-8").read()
        yaml.load(text.split("---")[1], Loader=yaml.CSafeLoader)
"""


def rows(rounds: int) -> list[Row]:
    """Compare `skillrun list` over 2,000 and 20,000 skills with the floor, and the one with the other."""
    found = []
    per_skill = {}
    for count in (100, 2_000, 20_000):
        with tempfile.TemporaryDirectory() as top:
            make(Path(top, "skills"), count)
            Path(top, "work").mkdir()
            command = [sys.executable, "-m", "skillrun", "list", f"{top}/skills"]

            def do(words: list[str], cwd: str = f"{top}/work") -> None:
                subprocess.run(words, stdout=subprocess.DEVNULL, check=True, cwd=cwd)

            times = in_turn(
                {
                    "list": lambda command=command: do(command),
                    "floor": lambda top=top: do([sys.executable, "-c", _FLOOR, f"{top}/skills"]),
                },
                3 if count > 10_000 else max(3, rounds // 20),
            )
        per_skill[count] = times["list"] / count
        name = f"skillrun list over {count:,} skills"
        found.append(Row(name, "reading and C-loader parsing them", times["list"] / times["floor"], 3))
    found.append(
        Row("time a skill at 20,000", "at 2,000", per_skill[20_000] / per_skill[2_000], 1.3, "linear")
    )
    return found


with contextlib.suppress(AttributeError):
    assert yaml.CSafeLoader
