"""What absent, null and empty mean, for every key at every layer: found out by running the code, not written down."""
# ruff: noqa: INP001 - a program of the documentation, not a package

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skillrun.errors import ConfigError, SkillError
from skillrun.permissions.ceiling import CEILING_KEYS
from skillrun.permissions.decide import decide
from skillrun.permissions.layers import load_layers
from skillrun.permissions.place import Place
from skillrun.permissions.request import ALL_KEYS
from skillrun.skills.model import Skill
from skillrun.skills.strict_yaml import read_yaml

if TYPE_CHECKING:
    from skillrun.permissions.grant import Grant

WRITTEN: Final = ("absent", "null", "empty")
_EMPTY: Final = {
    **dict.fromkeys(("fs_read", "fs_write", "network", "env", "deny"), "[]"),
    **dict.fromkeys(("limits", "scripts"), "{}"),
}
"""What empty is written as; of a number or a word it is the empty text."""

# One skill that asks for everything, so that the ceiling decides, and one ceiling that allows it, so that the skill does.
_GREEDY: Final = """fs_read: ["${workspace}"]
fs_write: ["${workspace}/out"]
network: true
timeout: 100
metadata: {skillrun: {env: [COLUMNS], limits: {memory: 1TiB, processes: 9999, file_size: 1TiB, output: 1GiB}}}
"""
_BASE: Final = """sandbox:
  fs_read: ["${workspace}"]
  fs_write: ["${workspace}/out"]
  deny: [kept]
  network: true
  timeout: 90
  env: [COLUMNS]
  limits: {memory: 3GiB, processes: 9, file_size: 5GiB, output: 7MiB}
  require: full
"""
_MODEST: Final = "fs_read: []\n"
BASES: Final = ("the base",)
NARROWING: Final = ("a project's file", "`skills.<key>.ceiling`", "a `floor`", "the machine file")


@dataclass(frozen=True, slots=True)
class _Scene:
    top: Path

    def write(self, name: str, text: str) -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def grant(
        self, front: str, base: str, *, project: str | None = None, machine: str | None = None
    ) -> Grant:
        """Decide about a skill; the files of one question are gone before the next."""
        work, skill = self.top / "home/work", self.top / "home/skills/demo"
        for folder in (work, skill, self.top / "scratch"):
            folder.mkdir(parents=True, exist_ok=True)
        own = self.write("home/.config/skillrun/skillrun.yaml", base)
        files = [self.write("home/work/skillrun.yaml", project)] if project is not None else []
        machine_file = self.write("machine.yaml", machine) if machine is not None else None
        try:
            layers = load_layers(
                ceiling=None,
                workspace=work,
                config_file=own,
                machine_file=machine_file,
                home=self.top / "home",
            )
            tree = read_yaml(f"name: demo\n{front}", path=skill / "SKILL.md")
            made = Skill(
                "demo", "demo", "", skill, skill, self.top / "home/skills", skill / "SKILL.md", tree, (), ()
            )
            place = Place(work, skill, self.top / "scratch", self.top / "home")
            return decide(made, layers, place, digest="sha256:" + "0" * 64)
        finally:
            for file in files:
                file.unlink()


def _outcome(grant: Grant, key: str, top: Path) -> object:
    """Return what a grant says about one key, as something that compares."""
    rights = grant.capabilities
    limits = rights.limits
    work = top / "home/work"
    return {
        "fs_read": {path.relative_to(work).as_posix() for path in rights.fs_read},
        "fs_write": {path.relative_to(work).as_posix() for path in rights.fs_write},
        "network": bool(rights.network),
        "timeout": rights.timeout,
        "env": set(rights.env),
        "limits": (limits.memory, limits.processes, limits.file_size, limits.output),
        "deny": {denied.path.name for denied in grant.denied if denied.reason.startswith("`deny`")},
        "require": grant.require,
        "enabled": grant.unconfined is None,
    }[key]


_NOTHING: Final[dict[str, object]] = {
    "fs_read": set(),
    "fs_write": set(),
    "network": False,
    "env": set(),
    "deny": set(),
}


def ceiling_rows() -> list[list[str]]:
    """Return a row for each key of a ceiling and each way to leave it without a value, a cell for each layer."""
    with tempfile.TemporaryDirectory() as folder:
        scene = _Scene(Path(folder).resolve())
        default, full = scene.grant(_GREEDY, "sandbox: {}\n"), scene.grant(_GREEDY, _BASE)
        return [
            [f"`{key}`", _label(key, written)]
            + [
                _cell(scene, layer, key, written, {"as in `default`": default, "as above": full})
                for layer in (*BASES, *NARROWING)
            ]
            for key in CEILING_KEYS
            for written in WRITTEN
        ]


def _label(key: str, written: str) -> str:
    return written if written == "absent" else f"`{_written(key, written)}`"


def _written(key: str, written: str) -> str:
    return "null" if written == "null" else _EMPTY.get(key, '""')


def _cell(scene: _Scene, layer: str, key: str, written: str, known: dict[str, Grant]) -> str:
    """Put one layer to the question and name the answer."""
    line = "" if written == "absent" else f"{key}: {_written(key, written)}"
    section = f"{{{line}}}"
    try:
        if layer in BASES:
            grant = scene.grant(_GREEDY, f"sandbox: {section}\n")
        else:
            more = {
                "`skills.<key>.ceiling`": f"skills: {{demo: {{ceiling: {section}}}}}\n",
                "a `floor`": f"floor: {section}\n",
            }.get(layer, "")
            text = f"sandbox: {section}\n"
            grant = scene.grant(
                _GREEDY,
                _BASE + more,
                project=text if layer == "a project's file" else None,
                machine=text if layer == "the machine file" else None,
            )
    except ConfigError as wrong:
        return "no such key" if wrong.problem.rule == "ceiling-unknown-key" else "error"
    found = _outcome(grant, key, scene.top)
    names = [name for name, other in known.items() if _outcome(other, key, scene.top) == found]
    names = [name for name in names if (name == "as above") == (layer not in BASES)]
    if key in _NOTHING and found == _NOTHING[key]:
        names = [*names, "nothing"] if written == "absent" else ["nothing", *names]
    if key == "fs_read" and found == {"out"}:
        names.append("nothing but the write roots")
    return names[0] if names else str(found)


def request_rows() -> list[list[str]]:
    """Return a row for each key of a request: what absent, null and empty mean there."""
    with tempfile.TemporaryDirectory() as folder:
        scene = _Scene(Path(folder).resolve())
        return [[f"`{key}`", *(_asked(scene, key, written) for written in WRITTEN)] for key in ALL_KEYS]


def _asked(scene: _Scene, key: str, written: str) -> str:
    line = "" if written == "absent" else f"metadata: {{skillrun: {{{key}: {_written(key, written)}}}}}\n"
    shown = "" if written == "absent" else f"`{_written(key, written)}`: "
    try:
        grant = scene.grant(line or _MODEST, _BASE)
    except SkillError:
        return f"{shown}error"
    rights = grant.capabilities
    if key in {"timeout", "limits"}:
        found = _outcome(grant, key, scene.top)
        same = found == _outcome(scene.grant(_GREEDY, _BASE), key, scene.top)
        return f"{shown}{'the most the ceiling allows' if same else found}"
    values: dict[str, object] = {
        "fs_read": sorted(map(str, rights.fs_read)) or "nothing",
        "fs_write": sorted(map(str, rights.fs_write)) or "nothing",
        "network": "nothing" if not rights.network else "some",
        "env": sorted(rights.env) or "nothing",
        "trust": "confined, as `external`" if not grant.unconfined else "unconfined",
        "cwd": f"`{grant.cwd.value}`",
        "approval": "`true`" if grant.approval else "`false`",
        "scripts": "found out from the script",
    }
    return f"{shown}{values[key]}"
