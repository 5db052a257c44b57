"""Rights: what a skill gets, in words that are the same on every machine, and what changed between two."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skillrun.check.project import HOME, written
from skillrun.permissions.capabilities import Capabilities, Limits, Network, inside
from skillrun.permissions.endpoint import Endpoint
from skillrun.permissions.reading import LIMIT_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillrun.check.subject import Subject
    from skillrun.permissions.grant import Grant

SECRETS: Final = "secrets"


class Effect(enum.Enum):
    """What a change does to one capability."""

    GAINED = "gained"
    WIDENED = "widened"
    NARROWED = "narrowed"
    LOST = "lost"

    @property
    def more(self) -> bool:
        """Whether the skill can do more after it."""
        return self in {Effect.GAINED, Effect.WIDENED}


@dataclass(frozen=True, slots=True)
class Change:
    """One change: the capability as in SKILL.md, what was and what is, each None where there is nothing."""

    capability: str
    effect: Effect
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Rights:
    """A grant without places. `denied` are the operator's own denies; `unconfined` says why, None when confined."""

    capabilities: Capabilities
    denied: frozenset[str] = field(default_factory=frozenset)
    unconfined: str | None = None

    def data(self) -> dict[str, Any]:
        """Return it as it stands in a lock."""
        rights = self.capabilities
        network = rights.network
        return {
            "fs_read": sorted(map(written, rights.fs_read)),
            "fs_write": sorted(map(written, rights.fs_write)),
            "network": True if network.everything else sorted(map(str, network.endpoints)),
            "env": sorted(rights.env),
            "timeout": _number(rights.timeout),
            "limits": {name: _number(getattr(rights.limits, name)) for name in LIMIT_NAMES},
            "denied": sorted(self.denied),
            "unconfined": self.unconfined,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Rights:
        """Read it from a lock. Raises ValueError, KeyError or TypeError for what `data` never wrote."""
        network = data["network"]
        limits = data["limits"]
        return cls(
            Capabilities(
                fs_read=frozenset(_path(text) for text in data["fs_read"]),
                fs_write=frozenset(_path(text) for text in data["fs_write"]),
                network=Network(everything=True)
                if network is True
                else Network(endpoints=frozenset(map(Endpoint.parse, network))),
                env=frozenset(map(_text, data["env"])),
                timeout=_bound(data["timeout"]),
                limits=Limits(**{name: _bound(limits[name]) for name in LIMIT_NAMES}),
            ),
            frozenset(map(_text, data["denied"])),
            None if data["unconfined"] is None else _text(data["unconfined"]),
        )


def rights_of(grant: Grant) -> Rights:
    """Return the rights of a grant that was decided in a project's place."""
    own = frozenset(written(denied.path) for denied in grant.denied if denied.at.preset != SECRETS)
    return Rights(grant.capabilities, own, None if grant.unconfined is None else grant.unconfined.value)


def rights(subject: Subject) -> Rights | None:
    """Return what a skill gets, None when it does not run."""
    return None if subject.grant is None else rights_of(subject.grant)


def changes(before: Rights, after: Rights) -> tuple[Change, ...]:
    """Return what changed, capability by capability."""
    old, new = before.capabilities, after.capabilities
    found = [
        *_paths("fs_read", old.fs_read, new.fs_read),
        *_paths("fs_write", old.fs_write, new.fs_write),
        *_network(old.network, new.network),
        *_names("env", old.env, new.env),
        *_numbers("timeout", old.timeout, new.timeout),
        *(
            change
            for name in LIMIT_NAMES
            for change in _numbers(f"limits.{name}", getattr(old.limits, name), getattr(new.limits, name))
        ),
    ]
    # A path that is denied no longer is a right that is gained.
    found += [Change("deny", Effect.GAINED, path, None) for path in sorted(before.denied - after.denied)]
    found += [Change("deny", Effect.LOST, None, path) for path in sorted(after.denied - before.denied)]
    if before.unconfined != after.unconfined:
        effect = Effect.GAINED if after.unconfined else Effect.LOST
        found.append(Change("unconfined", effect, before.unconfined, after.unconfined))
    return tuple(found)


def _paths(capability: str, old: frozenset[Path], new: frozenset[Path]) -> Iterator[Change]:
    for path in sorted(new - old):
        above = next((root for root in sorted(old) if inside(path, root)), None)
        below = [root for root in sorted(old) if inside(root, path)]
        if above is not None:
            yield Change(capability, Effect.NARROWED, written(above), written(path))
        elif below:
            yield Change(capability, Effect.WIDENED, ", ".join(map(written, below)), written(path))
        else:
            yield Change(capability, Effect.GAINED, None, written(path))
    for path in sorted(old - new):
        if not any(inside(path, root) or inside(root, path) for root in new):
            yield Change(capability, Effect.LOST, written(path), None)


def _network(old: Network, new: Network) -> Iterator[Change]:
    if old == new:
        return
    if new.everything:
        yield Change("network", Effect.WIDENED if old else Effect.GAINED, _hosts(old), "every host")
        return
    if old.everything:
        yield Change("network", Effect.NARROWED if new else Effect.LOST, "every host", _hosts(new))
        return
    for endpoint in sorted(map(str, new.endpoints - old.endpoints)):
        one = Network(endpoints=frozenset({Endpoint.parse(endpoint)}))
        met = one & old
        effect = Effect.NARROWED if one <= old else Effect.WIDENED if met else Effect.GAINED
        yield Change("network", effect, _hosts(met) if met and effect is Effect.WIDENED else None, endpoint)
    for endpoint in sorted(map(str, old.endpoints - new.endpoints)):
        if not Network(endpoints=frozenset({Endpoint.parse(endpoint)})) & new:
            yield Change("network", Effect.LOST, endpoint, None)


def _names(capability: str, old: frozenset[str], new: frozenset[str]) -> Iterator[Change]:
    yield from (Change(capability, Effect.GAINED, None, name) for name in sorted(new - old))
    yield from (Change(capability, Effect.LOST, name, None) for name in sorted(old - new))


def _numbers(capability: str, old: float, new: float) -> Iterator[Change]:
    if old != new:
        yield Change(capability, Effect.WIDENED if new > old else Effect.NARROWED, _shown(old), _shown(new))


def _hosts(network: Network) -> str | None:
    return ", ".join(sorted(map(str, network.endpoints))) or None


def _shown(number: float) -> str:
    return "no limit" if math.isinf(number) else f"{number:g}" if number < 1e6 else str(int(number))  # noqa: PLR2004 - bytes are written out


def _number(value: float) -> float | int | None:
    if math.isinf(value):
        return None
    return int(value) if value == int(value) else value


def _bound(value: Any) -> float:
    if value is None:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError("a limit is a number above 0")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is expected")
    return value


def _path(value: Any) -> Path:
    text = _text(value)
    if text == "~" or text.startswith("~/"):
        return Path(f"{HOME}{text[1:]}")
    return Path(f"/{text}" if text.startswith("${") else text)


def joined(found: Iterable[Change]) -> str:
    """Write changes in one phrase, for a message."""
    return "; ".join(phrase(change) for change in found)


def phrase(change: Change) -> str:
    """Write one change: `fs_write gained ${workspace}/out`, `timeout widened from 10 to 60`."""
    if change.before is not None and change.after is not None:
        return f"{change.capability} {change.effect.value} from {change.before} to {change.after}"
    return f"{change.capability} {change.effect.value} {change.after if change.after is not None else change.before}"
