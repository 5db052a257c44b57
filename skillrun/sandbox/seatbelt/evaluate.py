"""Evaluate: what a profile decides about an operation on a target, and which rule decides it.

The model (published measurements: microsoft/mxc#749 and #754, GreyhavenHQ/greywall#20, nolabs-ai/nono#971): the
exact operation is asked first, then the one above it, up to the root of its tree. Of each, the last rule with a
matching filter decides; without one, the last rule without a filter. A root that no rule speaks for answers by itself.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from skillrun.sandbox.seatbelt.matching import any_of, beginnings, matcher
from skillrun.sandbox.seatbelt.question import Question, question
from skillrun.sandbox.seatbelt.source import OWN_LIMITS
from skillrun.sandbox.seatbelt.tables import operations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillrun.sandbox.seatbelt.matching import Matcher
    from skillrun.sandbox.seatbelt.model import Profile, Rule


_IMPORTS: Final = "it imports a profile that is not known here"


class Tier(enum.Enum):
    """What kind of thing decided."""

    FILTERED = "a rule with a filter"
    UNFILTERED = "a rule without a filter"
    BUILT_IN = "no rule: the operation's own answer"
    NOT_LOADED = "the profile does not load"


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer. `operation` is the step of the walk that decided; `rule` is None where none did.

    `doubts` say why the answer may be another on a Mac; without any it is certain as far as the model is.
    """

    allowed: bool
    operation: str
    tier: Tier
    rule: Rule | None = None
    doubts: tuple[str, ...] = ()

    @property
    def certain(self) -> bool:
        """Whether nothing speaks against the answer."""
        return not self.doubts


@dataclass(frozen=True, slots=True)
class OperationRules:
    """The rules of one operation: filtered ones from the last to the first, and the last of the others."""

    filtered: tuple[tuple[Matcher, Rule], ...]
    unfiltered: Rule | None


_NONE: Final = OperationRules((), None)


@dataclass(slots=True)
class _Doubts:
    """What came up on the way: rules that might match, an import that might decide, and other reasons."""

    maybe: list[Rule] = field(default_factory=list)
    imported: bool = False
    reasons: list[str] = field(default_factory=list)

    def about(self, *, allowed: bool) -> tuple[str, ...]:
        """Return the doubts about an answer; a rule that might match is one only where it says otherwise."""
        told = [
            f"the `{rule.decision} {rule.written[0]}` depends on what can't be told here"
            for rule in self.maybe
            if rule.allow is not allowed
        ]
        imports = [_IMPORTS] if self.imported else []
        return tuple(dict.fromkeys((*imports, *self.reasons, *told)))


@dataclass(slots=True)
class Evaluator:
    """A profile, ready for many questions. The filters of an operation are made when it is first asked about."""

    profile: Profile
    _known: dict[str, OperationRules] = field(default_factory=dict)
    _last_import: int = field(init=False)

    def __post_init__(self) -> None:
        self._last_import = max((one.index for one in self.profile.imports), default=-1)

    def decide(self, operation: str, target: str, given: Mapping[str, Any] | None = None) -> Decision:
        """Decide about an operation by its name in a profile. Raises ValueError for an address that is none."""
        if not self.profile.loads:
            return Decision(allowed=False, operation=operation, tier=Tier.NOT_LOADED, doubts=self._may_load())
        known = operations()
        name = known.aliases.get(operation, operation)
        if name not in known.parents:
            doubt = f"there is no operation `{operation}` in any table that is known"
            return Decision(allowed=False, operation=operation, tier=Tier.BUILT_IN, doubts=(doubt,))
        return self.walk(question(name, target, given))

    def _may_load(self) -> tuple[str, ...]:
        """Say why a Mac may load the profile all the same."""
        # What is missing here an import may define.
        doubts = [_IMPORTS] if self.profile.imports else []
        if any(fault.rule in OWN_LIMITS for fault in self.profile.faults):
            doubts.append("it is more than is read here")
        return tuple(doubts)

    def walk(self, asked: Question) -> Decision:
        """Walk from the exact operation to the root of its tree."""
        known = operations()
        doubts = _Doubts(reasons=self._doubted(asked.operation))
        step = asked.operation
        while True:
            found = self._at(step, asked, doubts)
            if found is not None:
                tier, rule = found
                return Decision(rule.allow, step, tier, rule, doubts.about(allowed=rule.allow))
            if step in known.recent:
                doubts.reasons.append(f"`{step}` came after the table that is known; its parent is a guess")
            parent = known.parents[step]
            if parent is None:
                if step in known.unsure:
                    doubts.reasons.append(
                        f"sources and releases differ on what `{step}` answers without a rule"
                    )
                allowed = known.built_in[step]
                return Decision(allowed, step, Tier.BUILT_IN, None, doubts.about(allowed=allowed))
            step = parent

    def _doubted(self, operation: str) -> list[str]:
        """Return the doubts about an operation that its profile's text leaves, whatever the target is."""
        line = operations().line(operation)
        return [
            doubt.reason
            for doubt in self.profile.doubts
            if doubt.operations is None or not doubt.operations.isdisjoint(line)
        ]

    def alike(self, operation: str) -> tuple[object, ...]:
        """Return what an answer depends on besides the target: operations that are alike in it have one answer."""
        known = operations()
        line = known.line(operation)
        return (
            tuple(step for step in line if self.rules(step) != _NONE),
            tuple(step for step in line if step in known.recent),
            line[-1],
            beginnings(operation),
            tuple(self._doubted(operation)),
        )

    def _at(self, step: str, asked: Question, doubts: _Doubts) -> tuple[Tier, Rule] | None:
        """Find the rule of one operation that decides. An import counts as rules that stand in its place."""
        rules = self.rules(step)
        if step == "sysctl*":
            # In the library's text of 10.15 `sysctl-write` is another name of `sysctl*` (0xbf00/simbple, sbpl_v1.scm).
            doubts.maybe += [rule for fits, rule in self.rules("sysctl-write").filtered if fits(asked)]
        for fits, rule in rules.filtered:
            answer = fits(asked)
            if answer:
                doubts.imported |= self._last_import > rule.index
                return Tier.FILTERED, rule
            if answer is None:
                doubts.maybe.append(rule)
        doubts.imported |= self._last_import >= 0 and step not in operations().without_filters
        last = rules.unfiltered
        doubts.imported |= self._last_import > (-1 if last is None else last.index)
        return None if last is None else (Tier.UNFILTERED, last)

    def last_match(self, asked: Question) -> Rule | None:
        """Return the rule that would decide if the last match of all counted, as many profiles' authors believe."""
        found = [
            rule
            for step in operations().line(asked.operation)
            for fits, rule in (*self.rules(step).filtered, *self._bare(step))
            if fits(asked)
        ]
        return max(found, key=lambda rule: rule.index, default=None)

    def _bare(self, step: str) -> tuple[tuple[Matcher, Rule], ...]:
        last = self.rules(step).unfiltered
        return () if last is None else ((lambda _: True, last),)

    def rules(self, step: str) -> OperationRules:
        """Return the rules that are written for one operation."""
        found = self._known.get(step)
        if found is None:
            mine = [rule for rule in self.profile.rules if step in rule.operations]
            filtered = [rule for rule in reversed(mine) if rule.filters]
            bare = [rule for rule in mine if not rule.filters]
            found = OperationRules(
                tuple((any_of([matcher(one, step) for one in rule.filters]), rule) for rule in filtered),
                bare[-1] if bare else None,
            )
            self._known[step] = found
        return found
