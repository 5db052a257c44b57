"""Capabilities: the rights a run can have, as a lattice a reviewer can hold in the head.

TO BE WRITTEN BY THE PERMISSIONS ROOM. The names below are the contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one run; `math.inf` is the top, used only where a request leaves the choice to the ceiling."""

    memory: float  # bytes, over the whole tree
    processes: float
    file_size: float  # bytes, one file
    output: float  # bytes kept of each stream


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One host and port that may be connected to; port None means the documented default."""

    host: str
    port: int | None


@dataclass(frozen=True, slots=True)
class Network:
    """A set of endpoints; `everything` is its top (`network: true`)."""

    everything: bool = False
    endpoints: frozenset[Endpoint] = frozenset()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Rights in normal form."""

    fs_read: frozenset[Path]  # read roots; includes every write root; no path below another
    fs_write: frozenset[Path]
    network: Network
    timeout: float  # seconds
    env: frozenset[str]
    limits: Limits
