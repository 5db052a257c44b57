"""Config: a whole skillrun.yaml as values, whoever it belongs to."""

from __future__ import annotations

import enum
import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.errors import ConfigError
from skillrun.permissions.ceiling import CEILING_KEYS, Ceiling, read_ceiling
from skillrun.permissions.near import near_key
from skillrun.permissions.reading import Reader, is_null
from skillrun.permissions.request import Request, request_from_node
from skillrun.permissions.source import read_source
from skillrun.permissions.spelled import Base, Relative, Spelled, path_fault
from skillrun.problem import At, Severity
from skillrun.resources import folder
from skillrun.skills.node import Entry, Items, Mapping, Scalar
from skillrun.skills.strict_yaml import decode_text, read_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.skills.node import Node

TOP_KEYS: Final = ("sandbox", "trusted", "skills", "interpreters", "workspaces", "tools", "floor")
PROJECT_KEYS: Final = ("sandbox", "skills")
"""What a cloned folder may speak about: limits, and skills of its own repository."""
LAYER_KEYS: Final = tuple(key for key in CEILING_KEYS if key != "enabled")
"""A floor and an entry's ceiling limit; switching the sandbox off is said in one place only."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Role(enum.Enum):
    """Whose word a file is."""

    OPERATOR = "the operator's own file"
    NAMED = "the file of --ceiling"
    MACHINE = "the machine file"
    PROJECT = "a project file"
    PRESET = "a preset"


@dataclass(frozen=True, slots=True)
class SkillEntry:
    """`skills.<key>`: what is said about one skill, for one version when a digest is given."""

    key: str
    at: At
    role: Role
    digest: str | None = None
    request: Request | None = None
    ceiling: Ceiling | None = None


@dataclass(frozen=True, slots=True)
class Trusted:
    """A skill that may run unconfined when it asks for it, in exactly this version."""

    skill: Spelled
    digest: str
    at: At


@dataclass(frozen=True, slots=True)
class Tools:
    """What the operator says about tools for models; None leaves it to the room that makes them.

    `unattended_approval` is whether `--yes` stands for a person where there is no terminal.
    """

    max_tools: int | None = None
    approve: tuple[str, ...] | None = None
    unattended_approval: bool | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """One skillrun.yaml, read. `floor` and `sandbox` are None when they are absent."""

    at: At
    role: Role
    sandbox: Ceiling | None = None
    floor: Ceiling | None = None
    entries: tuple[SkillEntry, ...] = ()
    trusted: tuple[Trusted, ...] = ()
    interpreters: tuple[tuple[str, Spelled], ...] = ()
    workspaces: tuple[Spelled, ...] = ()
    tools: Tools = Tools()


def read_config(path: Path, role: Role) -> Config:
    """Read a skillrun.yaml from disk. ConfigError names everything that is wrong with it, with lines."""
    base: Base = path.parent if role in {Role.NAMED, Role.PROJECT} else Relative.FORBIDDEN
    return config_from_node(read_source(path, project=role is Role.PROJECT), role, base)


def preset_names() -> tuple[str, ...]:
    """Return the names of the shipped ceilings."""
    return tuple(sorted(path.stem for path in (folder("profiles") / "ceilings").glob("*.yaml")))


@functools.cache
def read_preset(name: str) -> Config:
    """Read a shipped ceiling. Every value says `preset NAME` as its place."""
    path = folder("profiles") / "ceilings" / f"{name}.yaml"
    text = decode_text(path.read_bytes(), path=path, rule="ceiling")
    tree = _moved(read_yaml(text, path=path, rule="ceiling"), At(preset=name))
    assert isinstance(tree, Mapping)  # noqa: S101 - moving keeps the kind, and read_yaml returns a map
    return config_from_node(tree, Role.PRESET, Relative.FORBIDDEN)


def config_from_node(root: Mapping, role: Role, base: Base) -> Config:
    """Turn the tree of a skillrun.yaml into values. `base` is what relative paths start from."""
    reader = Reader("ceiling")
    parts = {entry.key: entry for entry in root if _known(entry, role, reader)}
    config = Config(
        at=root.at,
        role=role,
        sandbox=_ceiling(parts.get("sandbox"), reader, base, CEILING_KEYS),
        floor=_ceiling(parts.get("floor"), reader, base, LAYER_KEYS),
        entries=_entries(parts.get("skills"), reader, base, role),
        trusted=_trusted(parts.get("trusted"), reader, base),
        interpreters=_interpreters(parts.get("interpreters"), reader, base),
        workspaces=_workspaces(parts.get("workspaces"), reader, base),
        tools=_tools(parts.get("tools"), reader),
    )
    if reader.problems:
        raise ConfigError(*reader.problems)
    return config


def _known(entry: Entry, role: Role, reader: Reader) -> bool:
    if entry.key not in TOP_KEYS:
        near = near_key(entry.key, TOP_KEYS)
        inner = near_key(entry.key, CEILING_KEYS)
        advice = f"the keys are {', '.join(TOP_KEYS)}"
        advice = (
            f"did you mean `{near}`?" if near else f"write it under `sandbox`: `{inner}`" if inner else advice
        )
        reader.fault("unknown-key", f"`{entry.key}` is not a key of skillrun.yaml", entry.at, advice)
        return False
    if role is Role.PROJECT and entry.key not in PROJECT_KEYS:
        message = f"`{entry.key}` is the operator's to say, not a project's"
        reader.fault("project-key", message, entry.at, "move it to your own skillrun.yaml")
        return False
    return True


def _ceiling(entry: Entry | None, reader: Reader, base: Base, keys: tuple[str, ...]) -> Ceiling | None:
    if entry is None:
        return None
    node = _mapping(entry, reader)
    return None if node is None else read_ceiling(node, reader, base=base, keys=keys)


def _entries(entry: Entry | None, reader: Reader, base: Base, role: Role) -> tuple[SkillEntry, ...]:
    node = None if entry is None else _mapping(entry, reader)
    found = [_entry(inner, reader, base, role) for inner in node or ()]
    return tuple(one for one in found if one is not None)


def _entry(entry: Entry, reader: Reader, base: Base, role: Role) -> SkillEntry | None:
    node = _mapping(entry, reader)
    if node is None:
        return None
    parts = _parts(node, ("digest", "request", "ceiling"), f"skills.{entry.key}", reader)
    request = None
    if "request" in parts and (asked := _mapping(parts["request"], reader)) is not None:
        request = request_from_node(asked, base=base, prefix="ceiling")
        reader.problems.extend(p for p in request.problems if p.severity is Severity.ERROR)
    return SkillEntry(
        key=entry.key,
        at=entry.at,
        role=role,
        digest=_digest(parts.get("digest"), reader),
        request=request,
        ceiling=_ceiling(parts.get("ceiling"), reader, base, LAYER_KEYS),
    )


def _trusted(entry: Entry | None, reader: Reader, base: Base) -> tuple[Trusted, ...]:
    found = []
    for item in _items(entry, reader):
        if not isinstance(item, Mapping):
            reader.wrong_type("an item of trusted", item, '`{skill: ~/skills/NAME, digest: "sha256:…"}`')
            continue
        parts = _parts(item, ("skill", "digest"), "trusted", reader)
        path = _path(parts.get("skill"), reader, base)
        digest = _digest(parts.get("digest"), reader)
        if "skill" not in parts or "digest" not in parts:
            # Trust without a digest would hold for whatever the folder becomes later.
            reader.fault(
                "type",
                "an item of trusted needs `skill` and `digest`",
                item.at,
                "`skillrun show` prints the digest",
            )
        elif path is not None and digest is not None:
            found.append(Trusted(path, digest, item.at))
    return tuple(found)


def _interpreters(entry: Entry | None, reader: Reader, base: Base) -> tuple[tuple[str, Spelled], ...]:
    node = None if entry is None else _mapping(entry, reader)
    found = [(inner.key, _path(inner, reader, base)) for inner in node or ()]
    return tuple((key, path) for key, path in found if path is not None)


def _workspaces(entry: Entry | None, reader: Reader, base: Base) -> tuple[Spelled, ...]:
    return () if entry is None else reader.paths("workspaces", entry.value, base) or ()


def _tools(entry: Entry | None, reader: Reader) -> Tools:
    node = None if entry is None else _mapping(entry, reader)
    if node is None:
        return Tools()
    parts = _parts(node, ("max_tools", "approve", "unattended_approval"), "tools", reader)
    most = _count(parts["max_tools"].value, reader) if "max_tools" in parts else None
    approve = reader.names("approve", parts["approve"].value) if "approve" in parts else None
    alone = parts.get("unattended_approval")
    unattended = None if alone is None else reader.truth("unattended_approval", alone.value)
    return Tools(most, None if approve is None else tuple(name for name, _ in approve), unattended)


def _count(node: Node, reader: Reader) -> int | None:
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        reader.wrong_type("max_tools", node, "a whole number above 0: `max_tools: 128`")
        return None
    return value


def _parts(node: Mapping, keys: tuple[str, ...], where: str, reader: Reader) -> dict[str, Entry]:
    for entry in node:
        if entry.key not in keys:
            near = near_key(entry.key, keys)
            advice = f"did you mean `{near}`?" if near else f"it has {', '.join(keys)}"
            reader.fault("unknown-key", f"`{where}` has no `{entry.key}`", entry.at, advice)
    return {entry.key: entry for entry in node if entry.key in keys}


def _mapping(entry: Entry, reader: Reader) -> Mapping | None:
    if isinstance(entry.value, Mapping):
        return entry.value
    if is_null(entry.value):
        reader.fault("null", f"`{entry.key}` is null", entry.at, "write `{}`, or leave the key out")
        return None
    reader.wrong_type(entry.key, entry.value, "a map of keys and values")
    return None


def _items(entry: Entry | None, reader: Reader) -> tuple[Node, ...]:
    if entry is None or is_null(entry.value):
        return ()
    if isinstance(entry.value, Items):
        return entry.value.items
    reader.wrong_type(entry.key, entry.value, "a list")
    return ()


def _path(entry: Entry | None, reader: Reader, base: Base) -> Spelled | None:
    text = None if entry is None else reader.text(entry.key, entry.value)
    if entry is None or text is None:
        return None
    fault = path_fault(text, base)
    if fault is not None:
        reader.fault("path", f"{entry.key}: {fault[0]}", entry.value.at, fault[1])
        return None
    return Spelled(text, entry.value.at, base)


def _digest(entry: Entry | None, reader: Reader) -> str | None:
    if entry is None:
        return None
    value = entry.value.value if isinstance(entry.value, Scalar) else None
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return value
    reader.wrong_type("digest", entry.value, "`sha256:` and 64 hexadecimal digits; `skillrun show` prints it")
    return None


def _moved(node: Node, at: At) -> Node:
    if isinstance(node, Mapping):
        return Mapping(tuple(Entry(e.key, at, _moved(e.value, at)) for e in node), at)
    if isinstance(node, Items):
        return Items(tuple(_moved(item, at) for item in node), at)
    return Scalar(node.value, node.text, at)
