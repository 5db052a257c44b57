"""Compare: what the inference says of a script, in the records of the oracle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillrun.runner import Runner
from skillrun.tools.infer.read import read_source
from skillrun.tools.interface import Form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillrun.tools.interface import Interface, Parameter

ORACLE = Path(__file__).with_name("argparse_oracle.py")
_CEILING = """
sandbox:
  fs_read: ["${workspace}"]
  fs_write: []
  timeout: 3000
  limits: {memory: 6GiB, processes: 256, output: 64MiB}
"""


def record(parameter: Parameter) -> dict[str, Any]:
    """Return a parameter as the oracle would describe it."""
    schema = parameter.schema
    made: dict[str, Any] = {"flag": parameter.flag, "required": parameter.required, "items": None}
    item = schema
    if parameter.form in {Form.LIST, Form.REST, Form.REPEAT}:
        made["shape"], item = "list", schema["items"]
        made["items"] = parameter.fixed
    elif parameter.form is Form.REPEATED_LISTS:
        made["shape"], item = "lists", schema["items"]["items"]
        made["items"] = parameter.fixed
    elif parameter.form is Form.SWITCH:
        made["shape"] = "switch"
    elif parameter.form is Form.COUNT:
        made["shape"] = "count"
    else:
        made["shape"] = "one"
        item = schema["anyOf"][0] if "anyOf" in schema else schema
        made["default"] = schema.get("default")
    made["type"], made["enum"] = item["type"], item.get("enum")
    return made


def differences(interfaces: Sequence[Interface], commands: list[dict[str, Any]]) -> list[str]:
    """Say where the inference and the oracle disagree, one line a parameter."""
    found: list[str] = []
    ours = {tuple(one.subcommand): one for one in interfaces}
    theirs = {tuple(one["path"]): one["parameters"] for one in commands}
    found += [f"command {path} is not inferred" for path in theirs if path not in ours]
    found += [f"command {path} does not exist" for path in ours if path not in theirs]
    for path, wanted in theirs.items():
        if path in ours:
            found += _of_command(ours[path], wanted)
    return found


def _of_command(interface: Interface, wanted: list[dict[str, Any]]) -> list[str]:
    own = [one for one in interface.parameters if one.form is not Form.STDIN and one.name != "args"]
    args = [one for one in interface.parameters if one.name == "args" and interface.complete]
    records = [record(one) for one in (*own, *args)]
    found = []
    positions = [one for one in records if one["flag"] is None]
    by_flag = {one["flag"]: one for one in records if one["flag"] is not None}
    for place, want in enumerate([one for one in wanted if one["flag"] is None]):
        got = positions[place] if place < len(positions) else None
        found += _differs(f"position {want['dest']}", got, want)
    for want in (one for one in wanted if one["flag"] is not None):
        found += _differs(want["flag"], by_flag.pop(want["flag"], None), want)
    found += [f"{flag} does not exist" for flag in by_flag]
    extra = len(positions) - sum(1 for one in wanted if one["flag"] is None)
    return found + ["a position too many"] * max(0, extra)


def _differs(name: str, got: dict[str, Any] | None, want: dict[str, Any]) -> list[str]:
    if got is None:
        return [f"{name} is missing"]
    keys = [
        key
        for key in ("shape", "type", "enum", "required", "items", "default")
        if got.get(key) != want.get(key)
    ]
    if keys == ["default"] and got.get("default") is None:
        return [f"{name}: default unknown ({want.get('default')!r})"]
    return [f"{name}: {key} {got.get(key)!r} for {want.get(key)!r}" for key in keys[:1]]


def answers(files: Sequence[Path], folder: Path) -> list[dict[str, Any]]:
    """Ask the oracle about scripts below `folder`, confined, without network and with nothing to write."""
    skill = folder.parent / f"{folder.name}-oracle"
    (skill / "scripts").mkdir(parents=True, exist_ok=True)
    (skill / "SKILL.md").write_text(
        '---\nname: oracle\ndescription: asks argparse\nfs_read: ["${workspace}"]\n---\n'
    )
    (skill / "scripts" / "oracle.py").write_text(ORACLE.read_text())
    ceiling = skill / "ceiling.yaml"
    ceiling.write_text(_CEILING)
    with Runner(workspace=folder, ceiling=ceiling) as runner:
        result = runner.run(skill, "oracle.py", [str(file) for file in files])
    assert result.ok, (result.termination, result.error, result.stderr.text[-2000:])
    return [json.loads(line) for line in result.stdout.text.splitlines()]


def compare(files: Sequence[Path], folder: Path) -> list[tuple[Path, int, list[str], str | None]]:
    """Return for each script the number of its parameters, the differences, and why the oracle has no answer."""
    made = []
    for answer in answers(files, folder):
        path = Path(answer["file"])
        if answer["commands"] is None:
            made.append((path, 0, [], answer["why"]))
            continue
        count = sum(len(one["parameters"]) for one in answer["commands"])
        source = path.read_text(encoding="utf-8-sig", errors="replace")
        made.append(
            (path, count, differences(read_source(source, "python").interfaces, answer["commands"]), None)
        )
    return made
