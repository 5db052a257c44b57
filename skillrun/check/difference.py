"""Difference: what a change does to the permissions of skills: gained, widened, narrowed, lost."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillrun.check.rights import Change, Effect, Rights, changes, rights
from skillrun.check.static.use import Kind
from skillrun.errors import SkillError
from skillrun.permissions.bounds import network_of
from skillrun.permissions.capabilities import Capabilities, Limits
from skillrun.permissions.grant import Capability
from skillrun.skills.digest import digest_of, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skillrun.check.subject import Subject
    from skillrun.skills.digest import Part


class State(enum.Enum):
    """What became of a skill."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class SkillChange:
    """What changed in one skill.

    `gets` are changes of what a run gets, `asks` those of the request that do not show there (refused, or cut),
    `uses` what scripts begin or cease to use. `files` are the paths that differ, each with `added`, `removed` or
    `changed`. `moved_from` is the old folder of a skill that has another one now. `invalid` says that the new
    version does not run.
    """

    label: str
    state: State
    gets: tuple[Change, ...] = ()
    asks: tuple[Change, ...] = ()
    uses: tuple[Change, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    moved_from: str | None = None
    invalid: bool = False

    @property
    def more(self) -> bool:
        """Whether the skill can do or asks for more than before."""
        return any(change.effect.more for change in (*self.gets, *self.asks, *self.uses))


def difference(before: Sequence[Subject], after: Sequence[Subject]) -> tuple[SkillChange, ...]:
    """Compare two versions of a collection. A skill is the same one in the same folder, else by a key that both have once."""
    old = {subject.label: subject for subject in before}
    new = {subject.label: subject for subject in after}
    moved = _moved([s for s in before if s.label not in new], [s for s in after if s.label not in old])
    found = []
    for label in sorted({*old, *new}):
        subject = new.get(label)
        earlier = old.get(label) or (moved.get(label) if subject is not None else None)
        if subject is None and any(one.label == label for one in moved.values()):
            continue  # told where it is now
        change = _compare(label, earlier, subject)
        if change is not None:
            found.append(change)
    return tuple(found)


def _moved(left: Iterable[Subject], came: Iterable[Subject]) -> dict[str, Subject]:
    gone: dict[str, list[Subject]] = {}
    for subject in left:
        gone.setdefault(subject.skill.key or "", []).append(subject)
    arrived: dict[str, list[Subject]] = {}
    for subject in came:
        arrived.setdefault(subject.skill.key or "", []).append(subject)
    return {
        arrived[key][0].label: gone[key][0]
        for key in arrived
        if key and len(arrived[key]) == 1 and len(gone.get(key, ())) == 1
    }


def _compare(label: str, before: Subject | None, after: Subject | None) -> SkillChange | None:
    files = tuple(_files(before, after))
    gets = changes(_gets(before), _gets(after))
    asks = tuple(change for change in changes(_asks(before), _asks(after)) if not _shown(change, gets))
    uses = tuple(_uses(before, after))
    if (
        before is not None
        and after is not None
        and not (files or gets or asks or uses)
        and before.label == after.label
    ):
        return None
    state = State.ADDED if before is None else State.REMOVED if after is None else State.CHANGED
    return SkillChange(
        label, state, gets, asks, uses, files,
        moved_from=before.label if before is not None and after is not None and before.label != after.label else None,
        invalid=after is not None and after.grant is None,
    )  # fmt: skip


def _gets(subject: Subject | None) -> Rights:
    """Return what a run gets; nothing where there is no run. A time alone is no right, so an absent skill has the same."""
    held = None if subject is None else rights(subject)
    return held if held is not None else Rights(Capabilities(timeout=0.0, limits=Limits(0, 0, 0, 0)))


def _asks(subject: Subject | None) -> Rights:
    """Return what is asked for, as if everything were granted."""
    if subject is None or subject.grant is None:
        return Rights(Capabilities(timeout=0.0, limits=Limits(0, 0, 0, 0)))
    read, write = subject.asked_paths
    request = subject.request
    limits = {
        str(one.value).partition("=")[0]: float(str(one.value).partition("=")[2])
        for one in request.of(Capability.LIMITS)
    }
    timeout = next((float(str(one.value)) for one in request.of(Capability.TIMEOUT)), 0.0)
    return Rights(
        Capabilities(
            fs_read=frozenset(read),
            fs_write=frozenset(write),
            network=network_of(one.endpoint or bool(one.value) for one in request.of(Capability.NETWORK)),
            env=frozenset(str(one.value) for one in request.of(Capability.ENV)),
            timeout=timeout,
            limits=Limits(**{"memory": 0, "processes": 0, "file_size": 0, "output": 0, **limits}),
        ),
        unconfined="trust: core" if request.of(Capability.TRUST) else None,
    )


def _shown(change: Change, gets: Sequence[Change]) -> bool:
    """Whether a change of the request shows in what is got; times and sizes always do where they matter."""
    if change.capability == "timeout" or change.capability.startswith("limits."):
        return True
    return any(
        one.capability == change.capability
        and one.effect == change.effect
        and one.after == change.after
        and one.before == change.before
        for one in gets
    )


def _uses(before: Subject | None, after: Subject | None) -> Iterator[Change]:
    """Give hosts, variables and programs that the scripts use now and did not, or the reverse."""
    old, new = _used(before), _used(after)
    for kind, value in sorted(new - old):
        yield Change(kind, Effect.GAINED, None, value)
    for kind, value in sorted(old - new):
        yield Change(kind, Effect.LOST, value, None)


def _used(subject: Subject | None) -> set[tuple[str, str]]:
    if subject is None:
        return set()
    found = subject.uses(Kind.NETWORK, Kind.ENV, Kind.PROGRAM)
    return {(used.use.kind.value, used.use.value or "some host") for used in found}


def _files(before: Subject | None, after: Subject | None) -> Iterator[tuple[str, str]]:
    old, new = _parts(before), _parts(after)
    if digest_of(old.values()) == digest_of(new.values()):
        return
    for path in sorted({*old, *new}):
        word = "added" if path not in old else "removed" if path not in new else "changed"
        if old.get(path) != new.get(path):
            yield path.decode("utf-8", "backslashreplace"), word


def _parts(subject: Subject | None) -> dict[bytes, Part]:
    if subject is None:
        return {}
    try:
        return {part.path: part for part in parts(subject.skill.path)}
    except SkillError:
        return {}
