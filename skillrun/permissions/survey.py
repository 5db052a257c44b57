"""Survey: the physical paths that deny entries and secret names stand for, where something is granted."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from skillrun.permissions.bounds import absolute
from skillrun.permissions.capabilities import inside
from skillrun.permissions.closed import ClosedError, may_be
from skillrun.permissions.grant import Denied
from skillrun.permissions.resolve import fold
from skillrun.permissions.spelled import Relative
from skillrun.problem import At
from skillrun.resources import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skillrun.permissions.place import Place
    from skillrun.permissions.resolve import Resolver
    from skillrun.permissions.spelled import Spelled

SECRETS_AT = At(preset="secrets")
"""Where a shipped secret name stands: `profiles/secrets.yaml`."""
_Parts: TypeAlias = tuple[str, ...]
_Names: TypeAlias = (
    "Mapping[str, Sequence[tuple[_Parts, str]]]"  # by folded first component: components and reason
)


@dataclass(frozen=True, slots=True)
class Ground:
    """What is surveyed: granted paths (True: not a file), and the operator's roots that they lie in.

    `named` are the exact paths that the operator's own file names: no secret to it.
    """

    granted: tuple[tuple[Path, bool], ...]
    limits: tuple[Path, ...]
    named: frozenset[Path]


def survey(ground: Ground, deny: Sequence[Spelled], resolver: Resolver, place: Place) -> dict[str, Denied]:
    """Return every denied path, by its text, whether it exists or not; of secrets those that touch a granted path.

    A denied path that is a link is denied as a node and as what it leads to: the name may not be
    replaced, and the content may not be reached by its own name. ClosedError where a folder of ours hides whether it
    is one.
    """
    found: dict[str, Denied] = {}
    for denied in _entries(ground, deny, resolver, place):
        found.setdefault(str(denied.path), denied)
    for text, denied in _secrets(ground, resolver, place):
        if denied.path not in ground.named:
            found.setdefault(text, denied)
    return found


def denied_by(path: Path, denied: Mapping[str, Denied], resolver: Resolver) -> Denied | None:
    """Return what denies a path: itself, or a folder above it. `denied` is what `survey` found.

    A path that does not exist has only the spelling of whoever asked; where the volume ignores letter
    case another spelling of a denied name is that name.
    """
    text = str(path)
    while text:
        if text in denied:
            return denied[text]
        text = text.rpartition("/")[0]
    if resolver.follow(str(path)).exists:
        return None
    parent = next(p for p in path.parents if resolver.follow(str(p)).exists)
    if not resolver.folds(parent):
        return None
    folded = {fold(text): one for text, one in denied.items()}
    return next((folded[fold(str(p))] for p in (path, *path.parents) if fold(str(p)) in folded), None)


def _entries(ground: Ground, deny: Sequence[Spelled], resolver: Resolver, place: Place) -> Iterator[Denied]:
    roots = (
        dict.fromkeys((*(path for path, _ in ground.granted), *ground.limits, place.workspace))
        if deny
        else ()
    )
    for spelled in deny:
        reason = f"`deny` names `{spelled.text}`"
        relative = not spelled.text.startswith(("/", "~/", "${"))
        texts = [f"{root}/{spelled.text}" for root in roots] if relative else []
        if not relative or spelled.base is not Relative.CWD:
            texts.append(absolute(spelled, place))
        for text in texts:
            yield from (Denied(path, why, spelled.at) for path, why in _both(text, reason, resolver))
        words = _words(spelled.text) if relative else ()
        if words:
            names = {fold(words[0]): ((words, reason),)}
            yield from (Denied(path, why, spelled.at) for path, why in _on_the_way(ground, names, resolver))


def _secrets(ground: Ground, resolver: Resolver, place: Place) -> Iterator[tuple[str, Denied]]:
    roots = [path for path, folder in ground.granted if folder]
    # A grant above the workspace or the home folder would take their secrets along, too deep to be "directly under" it.
    inner = [
        p for p in (place.workspace, place.home) if p is not None and any(inside(p, root) for root in roots)
    ]
    for root in dict.fromkeys((*roots, *inner)):
        there = resolver.follow(str(root)).exists
        for first, names in _below(root):
            if not (there and may_be(first, resolver.disk.lstat)):
                yield from names  # what is not there is no link, so its text is its physical path
                continue
            for text, denied in names:
                for path, why in _both(text, denied.reason, resolver):
                    yield str(path), Denied(path, why, SECRETS_AT)
    for path, reason in _on_the_way(ground, _secret_words(), resolver):
        yield str(path), Denied(path, reason, SECRETS_AT)


def _on_the_way(ground: Ground, names: _Names, resolver: Resolver) -> Iterator[tuple[Path, str]]:
    """Find names among the components of a granted path, below the operator's root that it lies in.

    A secret or denied name that is asked for by itself is as denied as one that a wider path would take
    along, at any depth.
    """
    for path, _ in ground.granted:
        depth = max((len(root.parts) for root in ground.limits if inside(path, root)), default=1)
        parts = path.parts
        for start in range(depth, len(parts)):
            for words, reason in names.get(fold(parts[start]), ()):
                end = start + len(words)
                if _equal(parts[start:end], words, parts[:start], resolver):
                    yield Path(*parts[:end]), reason


def _equal(parts: _Parts, words: _Parts, parent: _Parts, resolver: Resolver) -> bool:
    return parts == words or (
        tuple(map(fold, parts)) == tuple(map(fold, words)) and resolver.folds(Path(*parent))
    )


def _both(text: str, reason: str, resolver: Resolver) -> Iterable[tuple[Path, str]]:
    shut = resolver.shut(text)
    if shut is not None:
        raise ClosedError(shut, ours=True, lost=f"what `{text}` leads to can't be denied: {reason}")
    node, target = resolver.leaf(text)
    return ((node, reason),) if target is None else ((node, reason), (target, f"{reason}, which leads here"))


@functools.cache
def _secret_names() -> tuple[tuple[str, str], ...]:
    return tuple((name, group["reason"]) for group in table("secrets")["secrets"] for name in group["names"])


@functools.cache
def _secret_words() -> _Names:
    found: dict[str, list[tuple[_Parts, str]]] = {}
    for name, reason in _secret_names():
        words = _words(name)
        found.setdefault(fold(words[0]), []).append((words, reason))
    return found


# A function of the shipped table and a root's name alone, so remembering it can't be wrong; it is most of a decision's cost.
@functools.lru_cache(maxsize=256)
def _below(root: Path) -> tuple[tuple[str, tuple[tuple[str, Denied], ...]], ...]:
    top = str(root).rstrip("/")
    groups: dict[str, list[tuple[str, Denied]]] = {}
    for name, reason in _secret_names():
        text = f"{top}/{name}"
        groups.setdefault(f"{top}/{_words(name)[0]}", []).append(
            (text, Denied(Path(text), reason, SECRETS_AT))
        )
    return tuple((first, tuple(names)) for first, names in groups.items())


def _words(text: str) -> _Parts:
    return tuple(part for part in text.split("/") if part not in {"", "."})
