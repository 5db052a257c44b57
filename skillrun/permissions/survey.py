"""Survey: the physical paths that deny entries and secret names stand for, where something is granted."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from skillrun.permissions.bounds import absolute
from skillrun.permissions.capabilities import inside
from skillrun.permissions.grant import Denied
from skillrun.permissions.resolve import fold
from skillrun.permissions.spelled import Relative
from skillrun.problem import At
from skillrun.resources import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillrun.permissions.place import Place
    from skillrun.permissions.resolve import Resolver
    from skillrun.permissions.spelled import Spelled

SECRETS_AT = At(preset="secrets")
"""Where a shipped secret name stands: `profiles/secrets.yaml`."""
_Parts: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ground:
    """What is surveyed: granted paths (True: not a file), and the operator's roots that they lie in.

    `named` are the exact paths that the operator's own file names: no secret to it.
    """

    granted: tuple[tuple[Path, bool], ...]
    limits: tuple[Path, ...]
    named: frozenset[Path]


def survey(ground: Ground, deny: Sequence[Spelled], resolver: Resolver, place: Place) -> tuple[Denied, ...]:
    """Return every denied path that touches a granted one, whether it exists or not.

    A denied path that is a link is denied as a node and as what it leads to: the name may not be
    replaced, and the content may not be reached by its own name.
    """
    found: dict[Path, Denied] = {}
    for denied in (*_entries(ground, deny, resolver, place), *_secrets(ground, resolver, place)):
        related = any(inside(denied.path, path) or inside(path, denied.path) for path, _ in ground.granted)
        if related:
            found.setdefault(denied.path, denied)
    return tuple(found.values())


def _entries(ground: Ground, deny: Sequence[Spelled], resolver: Resolver, place: Place) -> Iterator[Denied]:
    if not deny:
        return
    roots = dict.fromkeys((*(path for path, _ in ground.granted), *ground.limits, place.workspace))
    for spelled in deny:
        reason = f"`deny` names `{spelled.text}`"
        relative = not spelled.text.startswith(("/", "~/", "${"))
        if not relative or spelled.base is not Relative.CWD:
            yield from _both(absolute(spelled, place), reason, spelled.at, resolver)
        if relative:
            for root in roots:
                yield from _both(f"{root}/{spelled.text}", reason, spelled.at, resolver)
            words = _words(spelled.text)
            for path, why in _on_the_way(ground, {words: reason} if words else {}, resolver):
                yield Denied(path, why, spelled.at)


def _secrets(ground: Ground, resolver: Resolver, place: Place) -> Iterator[Denied]:
    granted = [path for path, folder in ground.granted if folder]
    # A grant above the workspace or the home folder would take their secrets along, one level too deep to be "directly under".
    inner = [
        p for p in (place.workspace, place.home) if p is not None and any(inside(p, root) for root in granted)
    ]
    for root in dict.fromkeys((*granted, *inner)):
        top = str(root).rstrip("/")
        for words, name, reason in secret_names():
            if len(words) > 1 and not resolver.exists(f"{top}/{words[0]}"):
                yield from _unless(ground, Denied(Path(f"{top}/{name}"), reason, SECRETS_AT))
                continue
            for denied in _both(f"{top}/{name}", reason, SECRETS_AT, resolver):
                yield from _unless(ground, denied)
    for path, reason in _on_the_way(ground, {words: reason for words, _, reason in secret_names()}, resolver):
        yield from _unless(ground, Denied(path, reason, SECRETS_AT))


def _unless(ground: Ground, denied: Denied) -> Iterator[Denied]:
    if denied.path not in ground.named:
        yield denied


def _on_the_way(ground: Ground, names: dict[_Parts, str], resolver: Resolver) -> Iterator[tuple[Path, str]]:
    """Find names among the components of a granted path, below the operator's root that it lies in.

    Whoever asks for `./app/.env` by name gets no more than who asks for `.` does.
    """
    first: dict[str, list[_Parts]] = {}
    for words in names:
        first.setdefault(fold(words[0]), []).append(words)
    for path, _ in ground.granted:
        top = max(
            (root for root in ground.limits if inside(path, root)),
            key=lambda p: len(p.parts),
            default=Path("/"),
        )
        parts = path.parts
        for start in range(len(top.parts), len(parts)):
            for words in first.get(fold(parts[start]), ()):
                end = start + len(words)
                found = Path(*parts[:end])
                if _equal(parts[start:end], words, Path(*parts[:start]), resolver):
                    yield found, names[words]


def _equal(parts: _Parts, words: _Parts, parent: Path, resolver: Resolver) -> bool:
    return parts == words or (tuple(map(fold, parts)) == tuple(map(fold, words)) and resolver.folds(parent))


def _both(text: str, reason: str, at: At, resolver: Resolver) -> Iterable[Denied]:
    node, target = resolver.leaf(text)
    if target is None:
        return (Denied(node, reason, at),)
    return (Denied(node, reason, at), Denied(target, f"{reason}, which leads here", at))


def denied_by(path: Path, denied: Sequence[Denied], resolver: Resolver) -> Denied | None:
    """Return what denies a path that does not exist yet, also by another spelling where a volume ignores letter case."""
    for one in denied:
        if inside(path, one.path):
            return one
    for one in denied:
        same = fold(str(path)) == fold(str(one.path)) or fold(str(path)).startswith(fold(str(one.path)) + "/")
        if same and resolver.folds(one.path.parent):
            return one
    return None


@functools.cache
def secret_names() -> tuple[tuple[_Parts, str, str], ...]:
    """Return the shipped secret names: components, text, reason."""
    groups = table("secrets")["secrets"]
    return tuple((_words(name), name, group["reason"]) for group in groups for name in group["names"])


def _words(text: str) -> _Parts:
    return tuple(part for part in text.split("/") if part not in {"", "."})
