"""Place: everything about the caller's surroundings that paths and lookups depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run happens. Made by the caller or the command line; the library reads none of it by itself.

    All paths are absolute and physical. `home` None means that `~/` is an error. `environ` is the
    caller's environment, used for PATH and for granted variables only.
    """

    workspace: Path
    skill: Path
    scratch: Path
    home: Path | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
