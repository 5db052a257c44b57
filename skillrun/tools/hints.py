"""Hints: MCP's words about what a tool can do to the world, from what a run of it can be granted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skillrun.permissions.decide import Outline
from skillrun.sandbox.policy import Access

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillrun.permissions.grant import Grant
    from skillrun.tools.interface import Interface


@dataclass(frozen=True, slots=True)
class Hints:
    """Whether a run can change files, reach the network, or is not confined, which means everything."""

    writes: bool
    network: bool
    unconfined: bool

    def __or__(self, other: Hints) -> Hints:
        """Return what either can do."""
        return Hints(
            self.writes or other.writes, self.network or other.network, self.unconfined or other.unconfined
        )

    @property
    def annotations(self) -> Mapping[str, bool]:
        """MCP's annotations. Nothing is called harmless that could be more."""
        return {
            "readOnlyHint": not (self.writes or self.network or self.unconfined),
            "destructiveHint": self.writes or self.unconfined,
            "openWorldHint": self.network or self.unconfined,
        }


UNKNOWN: Final = Hints(writes=True, network=True, unconfined=True)
"""Of a tool about which nothing was found out."""


def hints_of(most: Outline | Grant, interface: Interface | None = None) -> Hints:
    """Return the hints for what is granted; a parameter that names a file to write may be given one."""
    names_one = interface is not None and any(one.access is Access.WRITE for one in interface.parameters)
    confined = most.confined if isinstance(most, Outline) else most.unconfined is None
    rights = most.capabilities
    return Hints(
        writes=bool(rights.fs_write) or names_one, network=bool(rights.network), unconfined=not confined
    )
