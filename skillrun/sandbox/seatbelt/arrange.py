"""Arrange: a policy's paths as the lists of parameters that the template is filled with. Pure.

Paths inside one another are collapsed, everything is sorted, so one policy has one text. What is kept is
found again by the names that kept it: a place with every protected name in it is one parameter, not a hundred.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun import resources
from skillrun.errors import ConfigError
from skillrun.problem import error
from skillrun.sandbox.policy import Access
from skillrun.sandbox.seatbelt.regexes import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Policy

MOST_BYTES: Final = 16_000
"""Of one rule's patterns. The compiler takes 65,535 of one operation's list (nix#4119); nix stays below 16 KiB too."""
_OVERHEAD: Final = 64  # bytes that a pattern costs besides its text, counted generously
_TRIED: Final = (
    3  # names of a list by which a place is looked for; of so many at least one is in no other list
)
_LONGEST: Final = 8_192  # bytes of one path; a Mac itself takes 1,024

Names = tuple[tuple[str, str], ...]
"""Parameters by kind (folder, file, root, above) and name: one rule's filters."""


@dataclass(frozen=True, slots=True)
class Arranged:
    """What the template is filled with: lists of rules, each a list of parameters; and the parameters' values."""

    values: tuple[tuple[str, str], ...]
    readable: tuple[Names, ...]
    writable: tuple[Names, ...]
    links: tuple[Names, ...]
    reached: tuple[Names, ...]
    guarded: tuple[Names, ...]
    hidden: tuple[Names, ...]
    guarded_places: tuple[str, ...]
    hidden_places: tuple[str, ...]
    pinned: tuple[Names, ...]
    own_readable: tuple[Names, ...]
    own_writable: tuple[Names, ...]
    network: bool


class _Values:
    """Parameters that are being named: one for each path and purpose, numbered in the order of the paths."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def name(self, prefix: str, paths: Iterable[str], *, either_case: bool = False) -> list[tuple[str, int]]:
        """Name paths; return each name with the bytes that it costs in a rule."""
        named = []
        for number, path in enumerate(paths):
            name = f"{prefix}_{number}"
            self.values[name] = path
            cost = len(path) + _OVERHEAD
            if either_case:
                pattern = self.values[f"{name}_ANY_CASE"] = f"^{folded(path)}($|/)"
                cost += len(pattern) + _OVERHEAD
            named.append((name, cost))
        return named


def arrange(policy: Policy, landscape: Landscape) -> Arranged:
    """Arrange a policy. Raises ConfigError for a path that can't be told to Seatbelt."""
    folders: set[str] = set()
    files: set[str] = set()
    writes: set[str] = set()
    own: dict[str, Access] = {}
    for rule in policy.rules:
        path, spot = _text(rule.path), landscape.spots.get(rule.path)
        if spot is None:
            continue
        if rule.own:
            own[path] = rule.access
            continue
        (folders if spot.folder else files).add(path)
        if rule.access is Access.WRITE:
            writes.add(path)
    tops = _collapsed(folders)
    lone = sorted(path for path in files if not _below_any(path, tops))
    write_tops = _collapsed(writes & folders)
    write_lone = sorted(path for path in writes & files if not _below_any(path, write_tops))
    links = sorted(_text(path) for path in policy.links)

    values = _Values()
    read = _kinds("folder", values.name("READ", tops)) + _kinds("file", values.name("READ_FILE", lone))
    write = _kinds("folder", values.name("WRITE", write_tops))
    write += _kinds("file", values.name("WRITE_FILE", write_lone))
    linked = _kinds("file", values.name("LINK", links))
    kept = _kept(landscape, tops + lone, write_tops + write_lone)
    guarded = values.name("GUARDED", kept.guarded, either_case=True)
    hidden = values.name("HIDDEN", kept.hidden, either_case=True)
    own_read = _kinds("folder", values.name("OWN", sorted(own)))
    own_write = [one for one, path in zip(own_read, sorted(own), strict=True) if own[path] is Access.WRITE]
    roots = [(("root", name), cost) for (_, name), cost in write]
    above = [(("above", name), cost) for name, cost in (*guarded, *hidden)]
    reached = [*read, *linked, *_kinds("folder", values.name("CWD", [_text(policy.cwd)]))]
    guarded_places = [name for name, _ in values.name("PLACE", kept.guarded_places)]
    hidden_places = [name for name, _ in values.name("SECRETS_OF", kept.hidden_places)]
    return Arranged(
        values=tuple(values.values.items()),
        readable=_chunks(read),
        writable=_chunks(write),
        links=_chunks(linked),
        reached=_chunks(reached),
        guarded=_chunks(_kinds("folder", guarded)),
        hidden=_chunks(_kinds("folder", hidden)),
        guarded_places=tuple(guarded_places),
        hidden_places=tuple(hidden_places),
        pinned=_chunks([*roots, *above]),
        own_readable=_chunks(own_read),
        own_writable=_chunks(own_write),
        network=policy.network,
    )


def _kinds(kind: str, named: Sequence[tuple[str, int]]) -> list[tuple[tuple[str, str], int]]:
    return [((kind, name), cost) for name, cost in named]


def _chunks(named: Sequence[tuple[tuple[str, str], int]]) -> tuple[Names, ...]:
    """Split a list into rules whose patterns stay below the limit. No list, no rule."""
    chunks: list[Names] = []
    chunk: list[tuple[str, str]] = []
    size = 0
    for name, cost in named:
        if chunk and size + cost > MOST_BYTES:
            chunks.append(tuple(chunk))
            chunk, size = [], 0
        chunk.append(name)
        size += cost
    return (*chunks, tuple(chunk)) if chunk else tuple(chunks)


@dataclass(frozen=True, slots=True)
class _KeptPaths:
    """What is kept: paths one by one, and places in which a whole list of names is."""

    guarded: list[str]
    hidden: list[str]
    guarded_places: list[str]
    hidden_places: list[str]


def _kept(landscape: Landscape, roots: Sequence[str], writes: Sequence[str]) -> _KeptPaths:
    """Sort what is kept. What may only not be changed counts where something may be."""
    below = tuple(f"{root.rstrip('/')}/" for root in writes)
    # A write root in, or itself, something kept: these and the folders above are few, so they are looked up by name.
    at_or_above = {root[:place] for root in below for place, letter in enumerate(root) if letter == "/"}
    hidden = {str(kept.path) for kept in landscape.kept if not kept.readable}
    guarded = {
        path
        for kept in landscape.kept
        if kept.readable and ((path := str(kept.path)).startswith(below) or path in at_or_above)
    }
    # A name that is protected and secret is hidden, and counts as kept in either list.
    guarded_places = _grouped(guarded, protected_names(), writes, besides=hidden)
    hidden_places = _grouped(hidden, secret_names(), roots, besides=frozenset())
    return _KeptPaths(
        _collapsed(map(_text, guarded)),
        _collapsed(map(_text, hidden)),
        [_text(place) for place in guarded_places],
        [_text(place) for place in hidden_places],
    )


def _grouped(
    paths: set[str], names: frozenset[str], likely: Sequence[str], *, besides: AbstractSet[str]
) -> list[str]:
    """Take the places out of a set of paths in which every one of a list of names is kept, and return them.

    `besides` are paths that are kept in another way, and count as kept.
    """
    places = []
    pending = [place for place in likely if place != "/"]
    while pending:
        place = pending.pop()
        there = _in_place(place, names)
        if there - besides <= paths:
            places.append(place)
            paths -= there
        if not pending and len(paths) >= len(names) // 2:
            # Places that nobody thought of, such as a repository deep in a workspace: found by any one name.
            ends = tuple(f"/{name}" for name in sorted(names)[:_TRIED])
            found = {path[: -len(end)] for path in paths for end in ends if path.endswith(end)} - {""}
            pending = [place for place in found if _in_place(place, names) - besides <= paths]
    return sorted(places)


@functools.lru_cache(maxsize=256)
def _in_place(place: str, names: frozenset[str]) -> frozenset[str]:
    """Return the paths of names in a place."""
    return frozenset(f"{place}/{name}" for name in names)


def _collapsed(paths: Iterable[str]) -> list[str]:
    """Leave out paths that lie in others."""
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda path: f"{path.rstrip('/')}/"):
        if not kept or not f"{path}/".startswith(f"{kept[-1].rstrip('/')}/"):
            kept.append(path)
    return kept


def _below_any(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def _text(path: Path | str) -> str:
    """Return a path for `-D`. A Mac's names are UTF-8; what is not, or is too long, has no rule that matches it."""
    text = str(path)
    if not text.isascii() or len(text) > _LONGEST:
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            size = _LONGEST + 1
        if size > _LONGEST:
            message = f"the path `{text}` is not UTF-8, or too long for a rule"
            raise ConfigError(error("path-unspeakable", message, help="rename it"))
    return text


@functools.cache
def protected_names() -> frozenset[str]:
    """Return the names of `profiles/protected.yaml`, without slashes at the end."""
    return frozenset(line["name"].rstrip("/") for line in resources.table("protected")["names"])


@functools.cache
def secret_names() -> frozenset[str]:
    """Return the names of `profiles/secrets.yaml`."""
    return frozenset(name for group in resources.table("secrets")["secrets"] for name in group["names"])
