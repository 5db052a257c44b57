"""Decisions: what the runs of one runner may do, decided anew whenever anything that decided it has changed.

A decision depends on the skill's version, on what the operator adds, and on what the disk answers on the way. Models call
the same tools again and again: where every answer is the same once more, so is the decision, and it is not made twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from skillrun.permissions.decide import NO_SCRATCH, decide
from skillrun.permissions.flags import Flags
from skillrun.permissions.resolve import Resolver
from skillrun.permissions.watched import Watched

if TYPE_CHECKING:
    from pathlib import Path

    from skillrun.permissions.grant import Grant
    from skillrun.permissions.layers import Layers
    from skillrun.permissions.place import Place
    from skillrun.permissions.voices import Voice
    from skillrun.running.call import Call
    from skillrun.running.lookup import Lookup
    from skillrun.skills.model import Skill

_MOST: Final = 256  # decisions remembered by one runner, and
_LARGEST: Final = 4_096  # questions and denied paths of one: bounds on memory
_Key: TypeAlias = "tuple[Path, Path | None, str]"


@dataclass(frozen=True, slots=True)
class _Decided:
    """A grant, whose voice it heard and what it was decided by; None for one that names the run's own scratch folder."""

    voice: Voice
    found: tuple[Watched, Grant] | None


class Decisions:
    """Decides for one runner. Thread-safe: what is remembered may at worst be decided twice."""

    def __init__(self, lookup: Lookup, layers: Layers) -> None:
        self._lookup = lookup
        self._layers = layers
        self._known: dict[_Key, _Decided] = {}

    def decide(self, skill: Skill, version: str, place: Place, call: Call) -> Grant:
        """Return what a call of that version may do at a place. Raises as `permissions.decide` does.

        UsageError when the workspace is no more what it was.
        """
        if call.flags or call.named or (call.typed and call.arguments):  # a person's, or one that opens files
            return self.afresh(skill, version, place, call)
        key = skill.path, skill.root, version
        voice = self._lookup.voice(skill, version)
        known = self._known.get(key)
        if known is not None and known.voice is voice:
            if known.found is None:
                return self.afresh(skill, version, place, call)
            watched, grant = known.found
            if watched.unchanged():
                return grant
        watched = Watched()
        # Every run has another scratch folder. In place of it stands a name that nothing has, so that whoever follows it is seen.
        grant = self._decide(skill, version, replace(place, scratch=NO_SCRATCH), call, Resolver(watched))
        own = watched.saw(str(NO_SCRATCH))
        if own or (not watched.torn and len(watched) + len(grant.denied) <= _LARGEST):
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = _Decided(voice, None if own else (watched, grant))
        # A torn one is not given out either: it may have followed what it should not have.
        return self.afresh(skill, version, place, call) if own or watched.torn else grant

    def afresh(self, skill: Skill, version: str, place: Place, call: Call) -> Grant:
        """Decide by the disk as it is now, whatever is remembered."""
        return self._decide(skill, version, place, call, Resolver())

    def _decide(self, skill: Skill, version: str, place: Place, call: Call, resolver: Resolver) -> Grant:
        self._lookup.check_workspace(resolver)
        return decide(
            skill,
            self._layers,
            place,
            digest=version,
            flags=call.flags or Flags(),
            arguments=call.arguments if call.typed else (),
            named=call.named,
            voice=self._lookup.voice(skill, version),
            resolver=resolver,
        )
