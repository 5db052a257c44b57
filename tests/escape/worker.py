"""The far half of the escape suite: runs skills confined, as whichever user this process is.

Started with a plain interpreter and PYTHONPATH; reads one JSON request a line from stdin and answers each
with one line. It shares no code with the tests, so that it can be run where nothing of them is readable.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillrun.errors import SkillrunError
from skillrun.host import Host
from skillrun.runner import Runner
from skillrun.sandbox.linux.backend import Linux

PIPELINE: Any = importlib.import_module(
    "skillrun.running.pipeline"
)  # a test changes a name in it for one run
PATHS = ("config_file", "machine_file", "state", "home", "temporary")


def host(request: dict[str, Any]) -> Host:
    """Make the host of a request: nothing of this process's own surroundings is in it."""
    paths = {name: Path(request[name]) for name in PATHS if request.get(name)}
    return Host(environ=request["environ"], **paths)


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run one script confined and tell everything that the tests look at."""
    ceiling = request.get("ceiling")
    before = Path.cwd()
    os.chdir(request.get("from", "/"))
    try:
        with Runner(
            workspace=Path(request["workspace"]),
            skills=[Path(root) for root in request["skills"]],
            ceiling=Path(ceiling) if ceiling and "/" in ceiling else ceiling,
            require=request.get("require"),
            backend=request.get("backend"),
            allow_unconfined=request.get("allow_unconfined", False),
            host=host(request),
        ) as runner:
            return started(runner, request)
    finally:
        os.chdir(before)


def started(runner: Runner, request: dict[str, Any]) -> dict[str, Any]:
    """Run with an opened runner, with what the request changes about the kernel or the moment."""
    claim(runner, request.get("probe", {}))
    scratches: list[str] = []
    modes: list[int] = []

    def note(ready: Any, plan: Any) -> None:
        scratches.append(str(ready.policy.scratch))
        if request.get("before_start"):
            swap(*request["before_start"])
        modes.append(ready.policy.scratch.stat().st_mode & 0o7777)

    survey = PIPELINE.survey
    if request.get("close_before_survey"):
        PIPELINE.survey = closing(survey, request["close_before_survey"])
    if request.get("before_survey"):
        PIPELINE.survey = meddled(survey, request["before_survey"])
    try:
        skill = request["skill"]
        result = runner.run(
            Path(skill) if skill.startswith("/") else skill,
            request["script"],
            request["arguments"],
            stdin=request.get("stdin", "").encode(),
            timeout=request.get("timeout", 30),
            strict=request.get("strict", False),
            on_plan=note,
        )
    finally:
        PIPELINE.survey = survey
    return {
        "termination": result.termination.value,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "out": result.stdout.text,
        "err": result.stderr.text,
        "error": result.error and problem(result.error),
        "violations": [problem(one) for one in result.violations],
        "warnings": [problem(one) for one in result.warnings],
        "backend": result.backend,
        "level": result.level,
        "leftovers": result.leftovers,
        "guarantees": {n: s.value for n, s in result.guarantees.items()} if result.guarantees else None,
        "interpreter": str(result.interpreter.path) if result.interpreter else None,
        "read": sorted(map(str, result.grant.capabilities.fs_read)),
        "write": sorted(map(str, result.grant.capabilities.fs_write)),
        "timeout": result.grant.capabilities.timeout,
        "network": bool(result.grant.capabilities.network),
        "refused": [[str(r.asked), r.reason] for r in result.grant.refused],
        "narrowed": [[str(n.asked), [str(g) for g in n.given]] for n in result.grant.narrowed],
        "scratch": scratches[0] if scratches else None,
        "scratch_mode": modes[0] if modes else None,
        "scratch_left": bool(scratches) and os.path.lexists(scratches[0]),
    }


def claim(runner: Runner, changes: dict[str, Any]) -> None:
    """Let the probe say something else about this host than what is true."""
    if changes:
        real = runner.launcher.probe
        runner.launcher.probe = lambda: replace(real(), **changes)  # type: ignore[method-assign]


def meddled(survey: Any, places: list[str]) -> Any:
    """Return a survey before which somebody else replaces a folder by a link: [folder, target]."""

    def wrapper(*arguments: Any, **named: Any) -> Any:
        swap(*places)
        return survey(*arguments, **named)

    return wrapper


def closing(survey: Any, path: str) -> Any:
    """Return a survey before which somebody else takes the right to search a folder away."""

    def wrapper(*arguments: Any, **named: Any) -> Any:
        Path(path).chmod(0o444)
        return survey(*arguments, **named)

    return wrapper


def swap(path: str, target: str) -> None:
    """Do what somebody else could do at any moment: move a path away and put a link to another in its place."""
    Path(path).rename(f"{path}.moved")
    Path(path).symlink_to(target)


def problem(one: Any) -> dict[str, Any]:
    """Show a problem as far as the tests look at it."""
    path = one.at.path if one.at else None
    return {"rule": one.rule, "message": one.message, "help": one.help, "path": str(path) if path else None}


def probe(request: dict[str, Any]) -> dict[str, Any]:
    """Say what speaks against each level of the backend `linux` on this host."""
    with Runner(workspace=Path(request["workspace"]), host=host(request)) as runner:
        found = runner.launcher.probe()
        return {str(level): [one.message for one in Linux(level).problems(found)] for level in (1, 2)}


def main() -> None:
    """Serve until stdin ends."""
    for line in sys.stdin:
        request = json.loads(line)
        kept = [os.open(path, os.O_RDONLY) for path in request.get("opened", ())]
        for descriptor in kept:
            os.set_inheritable(descriptor, True)
        try:
            answer = {"run": run, "probe": probe}[request["op"]](request)
        except SkillrunError as wrong:
            problems = [problem(one) for one in wrong.problems]
            answer = {"raised": type(wrong).__name__, "problems": problems}
        except BaseException:  # noqa: BLE001 - the test shall see it, whatever it is
            answer = {"crash": traceback.format_exc()}
        for descriptor in kept:
            os.close(descriptor)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
