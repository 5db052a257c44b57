"""Ceiling: the most an operator allows, one layer of it, every value with its place.

A key that is None is absent: "as the layer above says". An empty list is present and allows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from skillrun.permissions.grant import Requirement
from skillrun.permissions.near import near_key
from skillrun.permissions.reading import is_null
from skillrun.permissions.spelled import Base, Relative, Spelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillrun.permissions.reading import Reach, Reader
    from skillrun.problem import At
    from skillrun.skills.node import Entry, Mapping

T = TypeVar("T")

CEILING_KEYS: Final = (
    "enabled",
    "fs_read",
    "fs_write",
    "deny",
    "network",
    "timeout",
    "env",
    "limits",
    "require",
)
_STRENGTH: Final = {Requirement.NONE: 0, Requirement.CONFINED: 1, Requirement.FULL: 2}


@dataclass(frozen=True, slots=True)
class Bound(Generic[T]):
    """One value of a ceiling and where it was written."""

    value: T
    at: At


@dataclass(frozen=True, slots=True)
class Ceiling:
    """One layer of what is allowed at most. `at` is the place of the whole layer."""

    at: At
    enabled: Bound[bool] | None = None
    fs_read: Bound[tuple[Spelled, ...]] | None = None
    fs_write: Bound[tuple[Spelled, ...]] | None = None
    deny: Bound[tuple[Spelled, ...]] | None = None
    network: Bound[tuple[tuple[Reach, At], ...]] | None = None
    timeout: Bound[float] | None = None
    env: Bound[tuple[tuple[str, At], ...]] | None = None
    limits: Bound[tuple[tuple[str, int, At], ...]] | None = None
    require: Bound[Requirement] | None = None

    def completed(self, default: Ceiling) -> Ceiling:
        """Return this layer with every absent key, and every absent limit, taken from another one."""
        absent = {f.name: getattr(default, f.name) for f in fields(self) if getattr(self, f.name) is None}
        if self.limits is not None and default.limits is not None:
            named = {name for name, _, _ in self.limits.value}
            rest = tuple(limit for limit in default.limits.value if limit[0] not in named)
            absent["limits"] = Bound((*self.limits.value, *rest), self.limits.at)
        return replace(self, **absent)


def stronger(left: Requirement, right: Requirement) -> Requirement:
    """Return the requirement that asks for more."""
    return max(left, right, key=_STRENGTH.__getitem__)


def weaker_than(left: Requirement, right: Requirement) -> bool:
    """Whether one requirement asks for less than another."""
    return _STRENGTH[left] < _STRENGTH[right]


def read_ceiling(
    mapping: Mapping, reader: Reader, *, base: Base, keys: tuple[str, ...] = CEILING_KEYS
) -> Ceiling:
    """Read one `sandbox`, `floor` or `skills.<key>.ceiling` map.

    `base` is what relative paths start from. Relative deny entries are always allowed: they are names
    under every granted root. What is wrong lands in the reader.
    """
    found: dict[str, Bound[object]] = {}
    for entry in mapping:
        if entry.key not in keys:
            near = near_key(entry.key, keys)
            advice = f"did you mean `{near}`?" if near else f"the keys are {', '.join(keys)}"
            reader.fault("unknown-key", f"`{entry.key}` is not a key of a ceiling", entry.at, advice)
            continue
        value = _value(entry, reader, base)
        if value is not None:
            found[entry.key] = Bound(value, entry.at)
    return Ceiling(at=mapping.at, **found)  # type: ignore[arg-type]  # one reader a key, each returns that key's type


def _value(entry: Entry, reader: Reader, base: Base) -> object:
    key, node = entry.key, entry.value
    lists: dict[str, Callable[[], object]] = {
        "fs_read": lambda: reader.paths(key, node, base),
        "fs_write": lambda: reader.paths(key, node, base),
        "deny": lambda: _deny(entry, reader, base),
        "network": lambda: reader.network(key, node),
        "env": lambda: reader.names(key, node),
    }
    if is_null(node) and key not in lists:
        reader.fault("null", f"`{key}` is null", entry.at, "write a value, or leave the key out")
        return None
    if key in lists:
        return lists[key]()
    if key == "timeout":
        return reader.seconds(key, node)
    if key == "limits":
        return reader.limits(key, node)
    if key == "enabled":
        return reader.truth(key, node)
    word = reader.word(key, node, tuple(r.value for r in Requirement))
    return None if word is None else Requirement(word)


def _deny(entry: Entry, reader: Reader, base: Base) -> tuple[Spelled, ...] | None:
    # In a file that belongs to no folder a relative name still means "under every granted root".
    spelled = reader.paths(entry.key, entry.value, Relative.CWD if base is Relative.FORBIDDEN else base)
    for path in spelled or ():
        if ".." in path.text.split("/"):
            reader.fault(
                "path",
                f"deny: `{path.text}` climbs out of the root it is under",
                path.at,
                "write the whole path",
            )
            return None
    return spelled
