"""Render: an arranged policy as a profile's text and its parameters. The same input gives the same bytes."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import jinja2

from skillrun import resources
from skillrun.sandbox.seatbelt.arrange import Arranged, arrange, protected_names, secret_names
from skillrun.sandbox.seatbelt.regexes import folded

if TYPE_CHECKING:
    from collections.abc import Collection

    from skillrun.sandbox.landscape import Landscape
    from skillrun.sandbox.policy import Policy

_TEMPLATE: Final = "skill.sb.j2"
_NAMES_A_RULE: Final = (
    12  # each has the place before it, of 1,024 bytes at most, and a rule stays below 16 KB
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A profile: its text, and the parameters that it is given by `-D`, in their order.

    No path and no other word of a skill is in the text.
    """

    text: str
    parameters: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def render(policy: Policy, landscape: Landscape) -> Rendered:
    """Write the profile of a policy. Raises ConfigError for a path that can't be told to Seatbelt."""
    return fill(arrange(policy, landscape))


def fill(arranged: Arranged) -> Rendered:
    """Fill the template."""
    lists = {
        field.name: getattr(arranged, field.name) for field in fields(Arranged) if field.name != "values"
    }
    return Rendered(_template().render(lists), arranged.values)


@functools.cache
def _template() -> jinja2.Template:
    """Compile the template, with the lists that are the same in every profile."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.folder("profiles") / "seatbelt"),
        undefined=jinja2.StrictUndefined,  # a name that nobody fills in is an error, never an empty text
        autoescape=False,  # noqa: S701 - no text of anybody comes in: only names of parameters and shipped lists
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.globals.update(_closed_lists())
    return environment.get_template(_TEMPLATE)


def _closed_lists() -> dict[str, Any]:
    """Return what the template says about names, from the shipped tables."""
    return {
        "sysctl": [
            {"name": line["name"], "prefix": line.get("prefix", False), "why": line["why"]}
            for line in resources.table("seatbelt/sysctl")["names"]
        ],
        "protected_names": _patterns(protected_names()),
        "protected_parents": _parents(protected_names()),
        "secret_names": _patterns(secret_names()),
        "secret_parents": _parents(secret_names()),
    }


def _patterns(names: Collection[str]) -> list[list[tuple[str, str]]]:
    """Write names as patterns, so many in each rule."""
    patterns = [(name, folded(name)) for name in sorted(names)]
    return [patterns[place : place + _NAMES_A_RULE] for place in range(0, len(patterns), _NAMES_A_RULE)]


def _parents(names: Collection[str]) -> list[tuple[str, str]]:
    """Write the folders that names lie in as patterns."""
    parents = {name[:place] for name in names for place, letter in enumerate(name) if letter == "/"}
    return [(parent, folded(parent)) for parent in sorted(parents)]
