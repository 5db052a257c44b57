"""Seatbelt: writing a profile, and asking one."""

from __future__ import annotations

import random
import re
import tempfile
from dataclasses import fields
from pathlib import Path

from bench.measure import Row, in_turn
from skillrun.host import Host
from skillrun.runner import Runner
from skillrun.sandbox.foresee import foresee
from skillrun.sandbox.seatbelt.arrange import Arranged
from skillrun.sandbox.seatbelt.evaluate import Evaluator
from skillrun.sandbox.seatbelt.parse import parse
from skillrun.sandbox.seatbelt.render import fill, render

_QUESTIONS = 1000
_SIZE = 50_000  # characters of the profile that is asked


def rows(rounds: int) -> list[Row]:
    """Compare rendering with filling the same template with nothing, and questions with matching by `re`."""
    return [_rendering(rounds), _asking(max(3, rounds // 20))]


def _rendering(rounds: int) -> Row:
    with tempfile.TemporaryDirectory() as top:
        base = Path(top).resolve()
        for folder in ("work/out", "work/data", "home", "skills/demo/scripts"):
            (base / folder).mkdir(parents=True)
        (base / "skills/demo/scripts/main.sh").write_text("#!/bin/sh\n")
        front = "fs_read: [data, /etc/hosts]\nfs_write: [out]"
        (base / "skills/demo/SKILL.md").write_text(f"---\nname: demo\ndescription: d\n{front}\n---\n")
        host = Host(home=base / "home", environ={"PATH": "/usr/bin:/bin"}, temporary=base)
        with Runner(workspace=base / "work", skills=[base / "skills"], ceiling="dev", host=host) as runner:
            ready = runner.preview("demo").ready
            landscape = foresee(ready.policy, dict(ready.grant.missing), split=False)
            nothing = Arranged(**{field.name: () for field in fields(Arranged)} | {"network": False})
            times = in_turn(
                {"fill": lambda: fill(nothing), "render": lambda: render(ready.policy, landscape)}, rounds
            )
    return Row("rendering a profile", "the same template without rules", times["render"] / times["fill"], 2)


def _asking(rounds: int) -> Row:
    rng = random.Random(1)
    words = ["Users", "u", "work", "data", "out", "Library", "opt", "x", "y", "node_modules", "src", "a.b"]
    path = lambda: "/" + "/".join(rng.choice(words) for _ in range(rng.randint(2, 7)))  # noqa: E731
    lines, patterns, size = ["(version 1)", "(deny default)"], [], 0
    while size < _SIZE:
        kind, text = rng.choice(("literal", "subpath", "regex")), path()
        shown = f'#"^{re.escape(text)}/[^/]*$"' if kind == "regex" else f'"{text}"'
        line = f"({rng.choice(('allow', 'deny'))} file-read* ({kind} {shown}))"
        size += len(line) + 1
        lines.append(line)
        tail = {"literal": "$", "subpath": "(/|$)", "regex": "/[^/]*$"}[kind]
        patterns.append(re.compile(f"^{re.escape(text)}{tail}"))
    evaluator = Evaluator(parse("\n".join(lines)))
    paths = [path() for _ in range(_QUESTIONS)]
    patterns.reverse()

    def ask() -> None:
        for one in paths:
            evaluator.decide("file-read-data", one)

    def match() -> None:
        # The last rule that matches decides, so a loop may stop at the first one from the end too.
        for one in paths:
            for pattern in patterns:
                if pattern.search(one):
                    break

    times = in_turn({"match": match, "ask": ask}, rounds)
    return Row(
        f"{_QUESTIONS} questions on a profile of 50 KB",
        "the same patterns with `re` in a loop",
        times["ask"] / times["match"],
        5,
    )
