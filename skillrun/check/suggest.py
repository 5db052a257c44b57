"""Suggest: for a skill that declares nothing, the least request that its text explains, with the line for each part.

A proposal for a person. What a text can't tell is said and not guessed: a host that is put together at run time,
a path in the home folder, the key of a model provider are never part of it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.check.project import HOME, WORKSPACE, written
from skillrun.check.rules._covered import beyond
from skillrun.check.rules.undeclared_env import asks_for
from skillrun.check.static.use import Kind
from skillrun.permissions.capabilities import inside
from skillrun.permissions.environment import refusal
from skillrun.permissions.spelled import path_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from skillrun.check.subject import Subject, Used

_FOLDER_FROM: Final = 4
"""Files of one folder from which on the folder is asked for (facts/adoption 4); never the workspace itself."""
_KEYS: Final = ("fs_read", "fs_write", "network", "env")


@dataclass(frozen=True, slots=True)
class Part:
    """One value of a key, and where it was seen."""

    key: str
    value: str
    evidence: tuple[Used, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """Something that was seen and is not proposed, with the reason."""

    used: Used
    reason: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The least request for one skill. No parts: it asks for nothing."""

    subject: Subject
    parts: tuple[Part, ...]
    left: tuple[Left, ...]

    def values(self, key: str) -> tuple[Part, ...]:
        """Return the parts of one key."""
        return tuple(part for part in self.parts if part.key == key)

    def yaml(self) -> str:
        """Return the lines for the front matter. Without a part: `fs_read: []`, which says that nothing is needed."""
        lines = []
        for key in ("fs_read", "fs_write", "network"):
            values = [_quoted(part.value) for part in self.values(key)]
            if values:
                lines.append(f"{key}: [{', '.join(values)}]")
        names = [part.value for part in self.values("env")]
        if names:
            lines += ["metadata:", "  skillrun:", f"    env: [{', '.join(names)}]"]
        return "\n".join(lines or ["fs_read: []"])


def suggest(subject: Subject) -> Suggestion | None:
    """Return a suggestion for a skill that declares nothing; None for one that does, and for one that can't be read."""
    if subject.skill.front is None or subject.grant is None or subject.declares:
        return None
    left: list[Left] = []
    parts = [
        *_paths("fs_write", beyond(subject, Kind.WRITE), left, subject),
        *_paths("fs_read", beyond(subject, Kind.READ), left, subject),
        *_hosts(subject.uses(Kind.NETWORK), left),
        *_names(subject.uses(Kind.ENV), left),
    ]
    writes = {part.value for part in parts if part.key == "fs_write"}
    parts = [
        part for part in parts if part.key != "fs_read" or part.value not in writes
    ]  # writing includes reading
    return Suggestion(
        subject, tuple(sorted(parts, key=lambda part: (_KEYS.index(part.key), part.value))), tuple(left)
    )


def _paths(
    key: str, found: Iterable[tuple[Used, Path]], left: list[Left], subject: Subject
) -> Iterator[Part]:
    folders: dict[Path, list[tuple[Used, Path]]] = defaultdict(list)
    for used, path in found:
        reason = _no_proposal(key, used, path, subject)
        if reason is not None:
            left.append(Left(used, reason))
        else:
            folders[path.parent].append((used, path))
    for folder, files in folders.items():
        if len(files) >= _FOLDER_FROM and folder != WORKSPACE and inside(folder, WORKSPACE):
            yield Part(key, f"{_spelled(folder)}/", tuple(used for used, _ in files))
        else:
            yield from (Part(key, _spelled(path), (used,)) for used, path in files)


def _no_proposal(key: str, used: Used, path: Path, subject: Subject) -> str | None:
    """Say why a path is not proposed, None when it is."""
    own = subject.place.skill
    reasons = (
        (inside(path, HOME), "lies in the home folder, which is never proposed"),
        (inside(path, own) and own != WORKSPACE, "lies in the skill's own folder, which is never writable"),
        (not used.use.exact, "has an end that the text does not tell"),
        (path == WORKSPACE and key == "fs_write", "is the whole workspace"),
        (path_fault(_spelled(path)) is not None, "can't be written in a request"),
    )
    return next((reason for holds, reason in reasons if holds), None)


def _hosts(found: Iterable[Used], left: list[Left]) -> Iterator[Part]:
    hosts: dict[str, list[Used]] = defaultdict(list)
    for used in found:
        if used.use.value is None:
            left.append(Left(used, "connects, and the text does not tell where"))
        else:
            hosts[used.use.value].append(used)
    for host, uses in hosts.items():
        yield Part("network", host, tuple(uses))


def _names(found: Iterable[Used], left: list[Left]) -> Iterator[Part]:
    names: dict[str, list[Used]] = defaultdict(list)
    for used in found:
        name = used.use.value
        if name is None or not asks_for(name):
            continue
        if refusal(name) is not None:
            left.append(Left(used, "is a variable that nobody is given"))
        else:
            names[name].append(used)
    for name, uses in names.items():
        yield Part("env", name, tuple(uses))


def _spelled(path: Path) -> str:
    text = written(path)
    return (
        f"./{text.removeprefix('${workspace}/')}"
        if text.startswith("${workspace}/")
        else "."
        if text == "${workspace}"
        else text
    )


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
