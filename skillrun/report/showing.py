"""Showing: one skill for a person, the whole chain: asked → limit → granted, with file and line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.permissions.grant import Capability
from skillrun.report.escape import escape
from skillrun.report.running import enforcement
from skillrun.report.style import PLAIN, Style
from skillrun.report.text import fold
from skillrun.report.words import amount, near, permission, size, spot
from skillrun.sandbox.guarantee import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from skillrun.permissions.describe import Line
    from skillrun.permissions.grant import Grant, Item, Value
    from skillrun.permissions.request import Request
    from skillrun.problem import At
    from skillrun.sandbox.guarantee import Guarantees
    from skillrun.sandbox.policy import Policy
    from skillrun.skills.model import Interpreter

_LABEL: Final = 10  # columns of the words on the left
_KEY: Final = 18  # columns of a key of a ceiling
_PATHS: Final = frozenset({Capability.FS_READ, Capability.FS_WRITE})
_STATES: Final = {State.ENFORCED: "green", State.PARTIAL: "yellow", State.OPEN: "red"}


@dataclass(frozen=True, slots=True)
class Chain:
    """What is shown of one script of a skill, beyond what `list` shows.

    `own` is the skill's own request where the operator's entry replaced it. `ceiling` are the lines of
    every layer. `backend` is None when the run would be refused.
    """

    script: str
    interpreter: Interpreter | None
    digest: str
    grant: Grant
    policy: Policy
    ceiling: tuple[Line, ...]
    backend: str | None
    guarantees: Guarantees | None
    own: Request | None = None


@dataclass(frozen=True, slots=True)
class View:
    """How it is written: paths below `base` from there, in so many columns, in a style."""

    base: Path | None
    columns: int
    style: Style = PLAIN

    def pair(self, label: str, text: str, *colours: str, indent: str = "  ", wide: int = _LABEL) -> list[str]:
        """Write a label, in colours if any, and its text, broken below itself."""
        first = indent + label.ljust(wide)
        found = fold(text, self.columns, first=first, indent=" " * len(first))
        # Coloured only now: what colours is not as wide as it is long.
        found[0] = indent + self.style(label, *colours) + found[0][len(indent) + len(label) :]
        return found

    def title(self, text: str) -> str:
        """Write the title of a part."""
        return self.style(text, "bold")


def lines(chain: Chain, view: View) -> Iterator[str]:
    """Write the parts one after another, with an empty line between them."""
    for part in (
        _identity(chain, view),
        _permissions(chain, view),
        _ceiling(chain, view),
        _needs(chain, view),
    ):
        yield from part
        yield ""
    yield from _enforced(chain, view)


def _identity(chain: Chain, view: View) -> Iterator[str]:
    found = chain.interpreter
    start = "by itself" if found is None else f"{near(found.path, None)} ({escape(found.family)})"
    yield view.title("script")
    yield from view.pair("name", escape(chain.script))
    yield from view.pair("runs", start)
    yield from view.pair("in", near(chain.policy.cwd, None))
    yield from view.pair("digest", escape(chain.digest))


def _permissions(chain: Chain, view: View) -> Iterator[str]:
    grant = chain.grant
    yield view.title("permissions: asked, limit, granted")
    if chain.own is not None:
        yield from fold(
            "the operator's own file asks instead of the skill, which asked for:", view.columns, indent="  "
        )
        for asked in chain.own.asked:
            yield f"    {permission(asked.capability, asked.value)} ({spot(asked.at, view.base)})"
        if not chain.own.asked:
            yield "    nothing"
    if not (grant.granted or grant.narrowed or grant.refused):
        yield "  nothing was asked for and nothing is granted"
    for item in grant.granted:
        yield from _step(view, _title(item), item.at, item.limit_at)
        yield from view.pair("granted", _value(item.capability, item.value), indent="    ")
    for narrowed in grant.narrowed:
        title = permission(narrowed.capability, narrowed.asked)
        yield from _step(view, title, narrowed.asked_at, narrowed.limit_at)
        given = ", ".join(_value(narrowed.capability, value) for value in narrowed.given)
        yield from view.pair("narrowed", given, "yellow", indent="    ")
    for refused in grant.refused:
        yield from _step(
            view, permission(refused.capability, refused.asked), refused.asked_at, refused.limit_at
        )
        yield from view.pair("refused", escape(refused.reason), "red", indent="    ")
    yield from _denied(grant, view)


def _step(view: View, title: str, asked: At, limit: At | None) -> Iterator[str]:
    yield f"  {title}"
    if limit is not None and asked == limit:
        yield from view.pair("limit", f"{spot(limit, view.base)}, nothing asked for less", indent="    ")
        return
    yield from view.pair("asked", spot(asked, view.base), indent="    ")
    if limit is not None:
        yield from view.pair("limit", spot(limit, view.base), indent="    ")


def _title(item: Item) -> str:
    asked = item.value if item.asked is None else item.asked
    return permission(item.capability, asked)


def _value(capability: Capability, value: Value) -> str:
    if capability in _PATHS:
        return near(str(value), None)
    return permission(capability, value) if isinstance(value, bool) else amount(capability, value)


def _denied(grant: Grant, view: View) -> Iterator[str]:
    """Write what is denied: the operator's own lines one by one, the shipped names as one."""
    own = [denied for denied in grant.denied if denied.at.preset != "secrets"]
    for denied in own:
        yield f"  denied {near(denied.path, None)}"
        yield from view.pair("because", escape(denied.reason), indent="    ")
        yield from view.pair("limit", spot(denied.at, view.base), indent="    ")
    rest = len(grant.denied) - len(own)
    if rest:
        yield from fold(
            f"and {rest} names that usually hold secrets, such as `.env` and `.ssh`, are denied under what is "
            "granted (`skillrun explain` tells for each path)",
            view.columns,
            indent="  ",
        )


def _ceiling(chain: Chain, view: View) -> Iterator[str]:
    yield view.title("ceiling: the most it may have")
    layer = None
    for line in chain.ceiling:
        if line.layer != layer:
            layer = line.layer
            yield f"  {escape(layer)}"
        text = f"{_limit(line)}  ({spot(line.at, view.base)})"
        yield from view.pair(escape(line.key), text, indent="    ", wide=_KEY)


def _limit(line: Line) -> str:
    value = line.value
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if line.key == "timeout":
        return amount(Capability.TIMEOUT, value)
    if line.key.startswith("limits.") and line.key != "limits.processes" and isinstance(value, int | float):
        return size(value)
    return escape(str(value))


def _needs(chain: Chain, view: View) -> Iterator[str]:
    """Write what the run needs by itself, which is policy and no grant."""
    yield view.title("besides: what the run needs by itself")
    granted = {*chain.grant.capabilities.fs_read, *chain.grant.capabilities.fs_write}
    for rule in chain.policy.rules:
        if rule.path in granted:
            continue
        path = "a folder of its own" if rule.path == chain.policy.scratch else near(rule.path, None)
        yield from view.pair(rule.access.value, f"{path}: {escape(rule.reason)}")
    names = ", ".join(escape(key) for key, _ in chain.policy.environ)
    yield from view.pair("variables", names)


def _enforced(chain: Chain, view: View) -> Iterator[str]:
    if chain.backend is None or chain.guarantees is None:
        yield view.title("enforced by nothing: this run would be refused")
        return
    yield view.title(f"enforced by {enforcement(chain.backend, None, chain.guarantees)}")
    yield from states(chain.guarantees.items(), style=view.style)


def states(promised: Iterable[tuple[str, State]], *, style: Style = PLAIN) -> Iterator[str]:
    """Write each guarantee with its state."""
    for key, state in promised:
        yield f"  {key.ljust(12)}{style(state.value, _STATES[state])}"
