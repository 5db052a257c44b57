"""Starting the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measure import Row, in_turn

SRT = Path(__file__).parent / ".npm/node_modules/.bin/srt"  # put there by `make bench`


def rows(rounds: int) -> list[Row]:
    """Compare `skillrun --version` with importing click, and `skillrun run` with Anthropic's sandbox-runtime."""
    command = [sys.executable, "-m", "skillrun"]
    few = max(10, rounds // 10)
    with tempfile.TemporaryDirectory() as top:
        script = Path(top, "skills/hello/scripts/hello.sh")
        script.parent.mkdir(parents=True)
        script.write_text("#!/bin/sh\necho hello\n")
        script.parent.with_name("SKILL.md").write_text("---\nname: hello\ndescription: d\n---\n")
        workspace = Path(top, "work")
        workspace.mkdir()
        run = [*command, "run", "--workspace", str(workspace), str(script.parents[1])]

        def do(words: list[str]) -> None:
            subprocess.run(words, capture_output=True, check=True, cwd=workspace)

        things = {
            "click": lambda: do([sys.executable, "-c", "import click"]),
            "version": lambda: do([*command, "--version"]),
            "run": lambda: do(run),
        }
        if SRT.exists() and shutil.which("node"):
            things["srt"] = lambda: do([str(SRT), "-c", f"sh {script}"])
        times = in_turn(things, few)
    found = [
        Row("skillrun --version", "python -c 'import click'", times["version"] / times["click"], 4),
        Row(
            "skillrun run of a shell script", "python -c 'import click'", times["run"] / times["click"], None
        ),
    ]
    if "srt" in times:
        found.append(
            Row("skillrun run of a shell script", "sandbox-runtime", times["run"] / times["srt"], 0.4)
        )
    else:
        print("sandbox-runtime is not installed; `make bench` does it", file=sys.stderr)
    return found


assert os.name == "posix"
