"""Request: what a skill asks for, read strictly, every value with its place.

An error in a request means that it grants nothing and that the skill can't run (law 3). Absent, null
and empty stay three things (law 4): `Request.presence` tells them apart.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.permissions.endpoint import Endpoint
from skillrun.permissions.grant import Capability, Cwd, Value
from skillrun.permissions.near import near_key
from skillrun.permissions.reading import Reader, is_null
from skillrun.permissions.script_entries import ScriptEntry, read_script_entries
from skillrun.permissions.spelled import Base, Relative
from skillrun.permissions.string_form import unfold
from skillrun.problem import At, Problem, Severity, note, warning
from skillrun.skills.node import Entry, Items, Mapping, Scalar

if TYPE_CHECKING:
    from skillrun.permissions.reading import Reach
    from skillrun.skills.model import Skill
    from skillrun.skills.node import Node

TOP_KEYS: Final = ("fs_read", "fs_write", "network", "timeout", "trust")
"""Keys that are ours at the top level of a front matter, where the seeds write them."""
ALL_KEYS: Final = (*TOP_KEYS, "env", "limits", "cwd", "approval", "scripts")
"""Keys that are ours below `metadata.skillrun`."""
OTHERS_KEYS: Final = ALL_KEYS[len(TOP_KEYS) :]
SECTION: Final = "skillrun"


class Presence(enum.Enum):
    """Whether a key was written, and whether anything stands behind it."""

    ABSENT = "absent"
    NULL = "null"
    EMPTY = "empty"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Asked:
    """One thing that is asked for, and where.

    `value` is as written: a path's text, `True` or a host rule, a name, a number, `memory=1024` for a
    limit. `endpoint` is the host rule's normal form, `base` what a relative path starts from.
    """

    capability: Capability
    value: Value
    at: At
    base: Base = Relative.CWD
    endpoint: Endpoint | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. `present` lists the keys that were written, each with what stood there.

    `entries` are what `scripts` says, read.
    """

    asked: tuple[Asked, ...] = ()
    cwd: Cwd = Cwd.WORKSPACE
    approval: bool = False
    scripts: Mapping | None = None
    entries: tuple[ScriptEntry, ...] = ()
    problems: tuple[Problem, ...] = ()
    present: tuple[tuple[str, Presence], ...] = ()

    @property
    def valid(self) -> bool:
        """Whether nothing in the request is an error."""
        return all(problem.severity is not Severity.ERROR for problem in self.problems)

    def presence(self, key: str) -> Presence:
        """Say whether a key is absent, null, empty, or has a value."""
        return dict(self.present).get(key, Presence.ABSENT)

    def of(self, capability: Capability) -> tuple[Asked, ...]:
        """Return what is asked for of one capability."""
        return tuple(asked for asked in self.asked if asked.capability is capability)


def read_request(skill: Skill) -> Request:
    """Read the request of a skill from both places of its front matter. No front matter: nothing is asked for."""
    if skill.front is None:
        return Request()
    reader = Reader("request")
    found: dict[str, Entry] = {}
    _top_level(skill.front, reader, found)
    metadata = skill.front.get("metadata")
    if metadata is not None and isinstance(metadata.value, Mapping):
        _section(metadata.value, reader, found)
    return _values(found, reader, Relative.CWD)


def request_from_node(mapping: Mapping, *, base: Base = Relative.CWD, prefix: str = "request") -> Request:
    """Read a request from a map that holds nothing else, such as `skills.<key>.request` in skillrun.yaml."""
    reader = Reader(prefix)
    found: dict[str, Entry] = {}
    for entry in mapping:
        _ours(entry, reader, found, spelled=entry.key)
    return _values(found, reader, base)


def _top_level(front: Mapping, reader: Reader, found: dict[str, Entry]) -> None:
    for entry in front:
        if entry.key in TOP_KEYS:
            found[entry.key] = entry
        elif entry.key in OTHERS_KEYS:
            message = f"`{entry.key}` at top level is not skillrun's key and is ignored"
            help_ = f"to ask skillrun for it, write it under `metadata.{SECTION}`"
            reader.problems.append(note("request-not-ours", message, at=entry.at, help=help_))
        elif entry.key == SECTION or entry.key.startswith(f"{SECTION}."):
            message = f"`{entry.key}` stands at top level, where nothing reads it"
            reader.fault("misplaced", message, entry.at, "move it below `metadata`")
        elif (near := near_key(entry.key, TOP_KEYS)) is not None:
            reader.fault("near-key", f"`{entry.key}` is not a key", entry.at, f"did you mean `{near}`?")
        elif isinstance(entry.value, Mapping):
            _misplaced(entry, reader)


def _misplaced(outer: Entry, reader: Reader) -> None:
    # Whoever writes `capabilities: {fs_read: …}` believes it counts; a file system key is nobody else's word.
    assert isinstance(outer.value, Mapping)  # noqa: S101 - the only caller looked
    for entry in outer.value:
        if near_key(entry.key, ("fs_read", "fs_write"), exact=True) is not None:
            message = f"`{outer.key}.{entry.key}` is not read by skillrun, so nothing is asked for here"
            help_ = f"write it at top level or under `metadata.{SECTION}`"
            reader.problems.append(warning("request-misplaced", message, at=entry.at, help=help_))


def _section(metadata: Mapping, reader: Reader, found: dict[str, Entry]) -> None:
    for entry in metadata:
        if entry.key == SECTION:
            if isinstance(entry.value, Mapping):
                for inner in entry.value:
                    _ours(inner, reader, found, spelled=f"metadata.{SECTION}.{inner.key}")
            elif not is_null(entry.value):
                reader.wrong_type(
                    f"metadata.{SECTION}", entry.value, f'a map: `{SECTION}: {{fs_read: ["./data"]}}`'
                )
        elif entry.key.startswith(f"{SECTION}."):
            key = entry.key.removeprefix(f"{SECTION}.")
            _ours(
                Entry(key, entry.at, entry.value),
                reader,
                found,
                spelled=f"metadata.{entry.key}",
                strings=True,
            )
        elif near_key(entry.key, (SECTION,)) is not None:
            reader.fault(
                "near-key", f"`metadata.{entry.key}` is not a key", entry.at, f"did you mean `{SECTION}`?"
            )


def _ours(
    entry: Entry, reader: Reader, found: dict[str, Entry], *, spelled: str, strings: bool = False
) -> None:
    key, dot, limit = entry.key.partition(".") if strings else (entry.key, "", "")
    if key not in ALL_KEYS or (dot and (key != "limits" or not limit)):
        near = near_key(entry.key, ALL_KEYS)
        advice = f"did you mean `{near}`?" if near else f"the keys are {', '.join(ALL_KEYS)}"
        reader.fault("near-key" if near else "unknown-key", f"`{spelled}` is not a key", entry.at, advice)
        return
    # `skillrun.limits.memory` is one bound of the map `limits`; it waits under its whole name until the map is put together.
    name = entry.key if limit else key
    if name in found:
        message = f"`{spelled}` is written in two places, the other is {found[name].at}"
        reader.fault("two-places", message, entry.at, "keep one of them")
        return
    found[name] = Entry(limit or key, entry.at, unfold(key, entry.value) if strings else entry.value)


def _join_limits(found: dict[str, Entry], reader: Reader) -> None:
    parts = [found.pop(name) for name in tuple(found) if name.startswith("limits.")]
    if parts and "limits" in found:
        message = f"`limits` is written in two places, the other is {found['limits'].at}"
        reader.fault("two-places", message, parts[0].at, "keep one of them")
    elif parts:
        found["limits"] = Entry("limits", parts[0].at, Mapping(tuple(parts), parts[0].at))


def _values(found: dict[str, Entry], reader: Reader, base: Base) -> Request:
    _join_limits(found, reader)
    asked: list[Asked] = []
    for key in ("fs_read", "fs_write", "network", "timeout", "trust", "env", "limits"):
        if key in found:
            asked.extend(_asked(key, found[key].value, reader, base))
    cwd = _plain(found, "cwd")
    approval = _plain(found, "approval")
    word = reader.word("cwd", cwd, ("workspace", "skill")) if cwd is not None else None
    truth = reader.truth("approval", approval) if approval is not None else None
    scripts = _scripts(found.get("scripts"), reader)
    entries = read_script_entries(scripts, reader) if scripts is not None else ()
    return Request(
        asked=tuple(asked),
        cwd=Cwd(word) if word else Cwd.WORKSPACE,
        approval=bool(truth),
        scripts=scripts,
        entries=entries,
        problems=tuple(reader.problems),
        present=tuple((key, _presence(entry.value)) for key, entry in found.items()),
    )


def _asked(key: str, node: Node, reader: Reader, base: Base) -> list[Asked]:
    if is_null(node):
        return []
    capability = Capability(key)
    if capability in {Capability.FS_READ, Capability.FS_WRITE}:
        return [Asked(capability, s.text, s.at, s.base) for s in reader.paths(key, node, base) or ()]
    if capability is Capability.NETWORK:
        return [_reach(reach, at) for reach, at in reader.network(key, node) or ()]
    if capability is Capability.ENV:
        return [Asked(capability, name, at) for name, at in reader.names(key, node) or ()]
    if capability is Capability.LIMITS:
        return [
            Asked(capability, f"{name}={value}", at) for name, value, at in reader.limits(key, node) or ()
        ]
    if capability is Capability.TIMEOUT:
        value: Value = reader.seconds(key, node)
    else:
        # `external` is what everybody gets, so only `core` asks for something.
        value = "core" if reader.word(key, node, ("external", "core")) == "core" else None
    return [] if value is None else [Asked(capability, value, node.at)]


def _reach(reach: Reach, at: At) -> Asked:
    if isinstance(reach, Endpoint):
        return Asked(Capability.NETWORK, str(reach), at, endpoint=reach)
    return Asked(Capability.NETWORK, reach, at)


def _scripts(entry: Entry | None, reader: Reader) -> Mapping | None:
    if entry is None or is_null(entry.value):
        return None
    if not isinstance(entry.value, Mapping):
        reader.wrong_type("scripts", entry.value, "a map from script name to what it takes")
        return None
    return entry.value


def _plain(found: dict[str, Entry], key: str) -> Node | None:
    entry = found.get(key)
    return None if entry is None or is_null(entry.value) else entry.value


def _presence(node: Node) -> Presence:
    if is_null(node):
        return Presence.NULL
    if (isinstance(node, Items) and not node.items) or (isinstance(node, Mapping) and not node.entries):
        return Presence.EMPTY
    return Presence.EMPTY if isinstance(node, Scalar) and node.value == "" else Presence.VALUE
