"""`check` over thousands of skills with their scripts, against `list` and the parser of Python over the same files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measure import Row, in_turn

_FRONT = """---
name: skill-{n}
description: Converts table number {n} from one format to another.
fs_read: ["./data", "./in-{n}"]
fs_write: ["./out/"]
network: [api-{n}.example.com]
timeout: 30
---
# Skill {n}
"""
# The median Python script of public collections has 150 lines and imports argparse, json, pathlib and a client.
_PYTHON = '''#!/usr/bin/env python3
"""Convert table {n}."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import requests

API = "https://api-{n}.example.com"
HERE = Path(__file__).resolve().parent


class Converter:
    """Converts rows."""

    def __init__(self, source: Path, columns: list[str]) -> None:
        self.source = source
        self.columns = columns
        self.rows: list[dict[str, str]] = []

    def read(self) -> None:
        """Read the source."""
        with open(self.source, encoding="utf-8") as file:
            for number, line in enumerate(file):
                if number == 0 or not line.strip():
                    continue
                values = [value.strip() for value in line.split(",")]
                self.rows.append(dict(zip(self.columns, values)))
{functions}

def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--column", action="append", default=[])
    parser.add_argument("--output", default="out/table.json")
    arguments = parser.parse_args()
    converter = Converter(arguments.source, arguments.column)
    converter.read()
    answer = requests.post(f"{{API}}/tables", json=converter.rows, timeout=10)
    Path("out/answer.json").write_text(json.dumps(answer.json()))
    if os.environ.get("LANG", "").startswith("de"):
        subprocess.run(["iconv", "-f", "utf-8", arguments.output], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
_FUNCTION = '''
    def step_{k}(self, limit: int = {k}) -> list[str]:
        """Do step {k}."""
        found = []
        for row in self.rows[:limit]:
            text = " ".join(f"{{key}}={{value}}" for key, value in sorted(row.items()))
            if len(text) > limit and "x" in text:
                found.append(text.replace("x", "y").upper())
            else:
                found.append(text[: limit // 2])
        return found
'''
_SHELL = """#!/bin/sh
# Fetch table {n}.
set -eu
OUT="${{1:-out}}"
mkdir -p "$OUT"
for page in 1 2 3; do
    if curl -fsS "https://api-{n}.example.com/tables?page=$page" > "$OUT/$page.json"; then
        jq -r '.rows[] | .name' "$OUT/$page.json" | sort -u
    fi
done
cat <<END
done with {n}
END
"""
_FLOOR = """
import ast, os, sys
for folder, folders, files in os.walk(sys.argv[1]):
    for name in files:
        if name.endswith((".py", ".sh")):
            with open(os.path.join(folder, name), "rb") as file:
                source = file.read()
            if name.endswith(".py"):
                ast.parse(source)
"""


def make(root: Path, count: int) -> None:
    """Write skills: each has a Python script of 150 lines, every fourth a shell script as well."""
    for n in range(count):
        folder = root / f"group-{n // 500}" / f"skill-{n}"
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(_FRONT.format(n=n))
        functions = "".join(_FUNCTION.format(k=k) for k in range(8))
        (folder / "scripts" / "run.py").write_text(_PYTHON.format(n=n, functions=functions))
        if n % 4 == 0:
            (folder / "scripts" / "fetch.sh").write_text(_SHELL.format(n=n))


def rows(rounds: int) -> list[Row]:
    """Compare `skillrun check` over 2,000 skills with `skillrun list` and `ast.parse` of the same files."""
    with tempfile.TemporaryDirectory() as top:
        make(Path(top, "skills"), 2_000)
        Path(top, "work").mkdir()

        def do(*words: str) -> None:
            subprocess.run(
                [sys.executable, *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
                cwd=f"{top}/work",
            )

        times = in_turn(
            {
                "check": lambda: do("-m", "skillrun", "check", f"{top}/skills", "--format", "json"),
                "list": lambda: do("-m", "skillrun", "list", f"{top}/skills"),
                "parse": lambda: do("-c", _FLOOR, f"{top}/skills"),
            },
            max(3, rounds // 40),
        )
    name = "skillrun check over 2,000 skills"
    return [
        Row(
            name,
            "list, and ast.parse of the same files",
            times["check"] / (times["list"] + times["parse"]),
            3,
        )
    ]
